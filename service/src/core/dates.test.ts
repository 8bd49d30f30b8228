import assert from "node:assert/strict";
import { test } from "node:test";
import { dayOf, daysAfter, toLongDate } from "./dates.ts";

const moment = new Date("2027-02-28T23:59:59.999Z");

test("daysAfter: days of 24 hours, forwards and backwards", () => {
  assert.equal(daysAfter(moment, 1).toISOString(), "2027-03-01T23:59:59.999Z");
  assert.equal(daysAfter(moment, -28).toISOString(), "2027-01-31T23:59:59.999Z");
  assert.deepEqual(daysAfter(moment, 0), moment);
});

test("dayOf and toLongDate: in UTC", () => {
  assert.equal(dayOf(moment), "2027-02-28");
  assert.equal(toLongDate(moment), "28 February 2027");
});
