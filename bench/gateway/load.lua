-- SPDX-License-Identifier: Apache-2.0
-- What every connection sends: a payment with a key of its own (KEYS=random), or one of the first
-- KEYS numbered keys. Counts answers that are not what EXPECT says, so that no ratio is printed over
-- errors: "201" is any 201, "first" a 201 that is no replay, "replay" a replayed 201. With PAUSE_MS
-- every connection rests that long before a request, give or take a half.
local keys = os.getenv("KEYS") or "random"
local expect = os.getenv("EXPECT") or "201"
local threads = {}

function setup(thread)
  thread:set("seed", tonumber(os.getenv("SEED") or "1") + #threads)
  table.insert(threads, thread)
end

function init()
  math.randomseed(seed)
  wrong = 0
  counter = 0
  body = '{"order_id":"o-1","amount":4200,"currency":"CNY","items":[{"sku":"a-1","qty":2}]}'
end

if tonumber(os.getenv("PAUSE_MS") or "0") > 0 then
  local pause_ms = tonumber(os.getenv("PAUSE_MS"))
  function delay()
    return math.random(math.floor(pause_ms / 2), math.ceil(pause_ms * 3 / 2))
  end
end

local function hex4()
  return math.random(0, 65535)
end

function request()
  local key
  counter = counter + 1
  if keys == "random" then
    key = string.format("%04x%04x-%04x-4%03x-8%03x-%04x%04x%04x", hex4(), hex4(), hex4(),
                        math.random(0, 4095), math.random(0, 4095), hex4(), hex4(), hex4())
  elseif os.getenv("IN_ORDER") then
    key = string.format("%08d-0000-4000-8000-000000000000", counter % tonumber(keys))
  else
    key = string.format("%08d-0000-4000-8000-000000000000", math.random(0, tonumber(keys) - 1))
  end
  return wrk.format("POST", os.getenv("TARGET") or "/api/payments",
                    { ["Content-Type"] = "application/json", ["Idempotency-Key"] = key }, body)
end

function response(status, headers)
  local replayed = headers["Idempotent-Replayed"] == "true"
  local marked = headers["Counterfoil-Unprotected"] ~= nil
  if status ~= 201 or marked or (expect == "first" and replayed) or
     (expect == "replay" and not replayed) then
    wrong = wrong + 1
  end
end

function done(summary, latency)
  local bad = 0
  for _, thread in ipairs(threads) do
    bad = bad + thread:get("wrong")
  end
  local e = summary.errors
  io.write(string.format("RESULT requests=%d us=%d p50=%d p99=%d wrong=%d\n", summary.requests,
                         summary.duration, latency:percentile(50), latency:percentile(99),
                         bad + e.connect + e.read + e.write + e.timeout))
end
