import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf, networkUnlessLoopback, removePorts } from "./network.ts";

test("networkOf, IPv4 address: the address, also if mapped to IPv6", () => {
  assert.equal(networkOf("203.0.113.7"), "203.0.113.7");
  assert.equal(networkOf("::ffff:203.0.113.7"), "203.0.113.7");
});

test("networkOf, IPv6 address: its /64, in any spelling", () => {
  const block = networkOf("2001:db8:1:2::1");
  for (const ip of ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:0DB8:0001:0002::abcd", "2001:db8:1:2::"])
    assert.equal(networkOf(ip), block);
  assert.notEqual(networkOf("2001:db8:1:3::1"), block);
});

test("networkOf, link-local address with a zone: without the zone", () => {
  assert.equal(networkOf("fe80::1%eth0"), networkOf("fe80::2"));
});

test("networkOf, no address: one shared network", () => {
  for (const text of ["", "unknown", "1.2.3.4.5", "_hidden"]) assert.equal(networkOf(text), "unknown");
});

test("networkUnlessLoopback, loopback address: null", () => {
  for (const ip of ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
    assert.equal(networkUnlessLoopback(ip), null);
  for (const ip of ["203.0.113.7", "2001:db8:1:2::1", "_hidden"])
    assert.equal(networkUnlessLoopback(ip), networkOf(ip));
});

test("removePorts: removes only ports from X-Forwarded-For", () => {
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
