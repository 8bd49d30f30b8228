import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf, networkUnlessLoopback, removePorts } from "./network.ts";

test("an IPv4 address stands for itself, also when it is written as IPv6", () => {
  assert.equal(networkOf("203.0.113.7"), "203.0.113.7");
  assert.equal(networkOf("::ffff:203.0.113.7"), "203.0.113.7");
});

test("an IPv6 address stands for its /64, however it is written", () => {
  const block = networkOf("2001:db8:1:2::1");
  for (const ip of ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:0DB8:0001:0002::abcd", "2001:db8:1:2::"])
    assert.equal(networkOf(ip), block);
  assert.notEqual(networkOf("2001:db8:1:3::1"), block);
});

test("the zone of a link-local address is no part of it", () => {
  assert.equal(networkOf("fe80::1%eth0"), networkOf("fe80::2"));
});

test("what is no address shares one block", () => {
  for (const text of ["", "unknown", "1.2.3.4.5", "_hidden"]) assert.equal(networkOf(text), "unknown");
});

test("strangers come from elsewhere than this machine", () => {
  for (const ip of ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
    assert.equal(networkUnlessLoopback(ip), null);
  for (const ip of ["203.0.113.7", "2001:db8:1:2::1", "_hidden"])
    assert.equal(networkUnlessLoopback(ip), networkOf(ip));
});

test("X-Forwarded-For loses the ports that some proxies write, and nothing else", () => {
  for (const [given, expected] of [
    ["203.0.113.7:51234", "203.0.113.7"],
    ["203.0.113.7:51234, 10.0.0.1:80", "203.0.113.7, 10.0.0.1"],
    ["[2001:db8::1]:443, [2001:db8::2]", "2001:db8::1, 2001:db8::2"],
    ["2001:db8::1,203.0.113.7", "2001:db8::1, 203.0.113.7"],
    ["_hidden, unknown", "_hidden, unknown"],
  ]) {
    const headers = { "x-forwarded-for": given! };
    removePorts(headers);
    assert.equal(headers["x-forwarded-for"], expected);
  }
});
