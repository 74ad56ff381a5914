-- SPDX-License-Identifier: MIT
--
-- Decides a batch of independent requests, in order, by the model of src/model/bucket.h, with the
-- server's clock. One text for every configuration: limits come with the call.
--
-- KEYS: the bucket of each claim of each request, in order. ARGV[1], packed: 1 when a key comes
--   twice, and 2 more for states as JSON; then runs of like requests: how many follow each other,
--   operation, number of claims (from 1), cost, taken at; and for each of their claims rate, burst,
--   delay, whole seconds to live at least.
--
-- Reply, packed: the time; for each request one byte for what became of it (1 done, 0 rejected, 128 + i
-- its claim i can't be read); and for each claim of each timestamp and value as they were before, all
-- bits set where there was none.
--
-- A later request sees what an earlier one took. A bucket that seems to have no state may be of
-- another type, which MGET doesn't tell: that is looked up before the first write of its request.
--
-- What costs time here are calls, new tables, and functions with the variables that they close over,
-- not arithmetic: hence one long body, no table for a lone claim, limits read once a run, and one
-- string to answer with.

-- Needed from Redis 3.2 to 4, where it lets a script write after it has read the clock.
if not redis.setresp then pcall(redis.replicate_commands) end

-- Numbers and strings by a name in capitals are put in their places before the server sees them.
local REQUEST = 0
local PEEK = 1
local CHARGE = 3
local RESET = 4
local GIVE_BACK = 5
local TICK = 2e-6
local FULL = 1e15
local LONGEST = 1e10
local TEXT_MAX = 4096
local REJECTED = 0
local DONE = 1
local UNREADABLE = 128
local NONE = '\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255'

local KEYS, args = KEYS, ARGV[1]
local call, pack, unpacked = redis.call, struct.pack, struct.unpack

local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000

-- The first run, of which `left` requests are still to come.
local flags, left, operation, len, cost, taken_at, rate, burst, delay, expiry, at =
  unpacked('<BBBBdddddd', args)
local json, twice = flags >= 2, flags % 2 == 1

local read_json

if json then
  -- True for a JSON number: cjson takes more than that.
  local function is_number(text)
    local whole, rest = text:match('^%-?(%d+)(.*)$')
    if not whole or #text > 64 or (#whole > 1 and whole:byte() == 48) then return false end
    rest = rest:gsub('^%.%d+', '')
    return rest == '' or rest:match('^[eE][+-]?%d+$') ~= nil
  end

  -- True when what stands outside of strings is JSON, as far as cjson wouldn't notice.
  local function is_strict(text)
    local plain = text:gsub('\\.', '')
    for inside in plain:gmatch('"([^"]*)"') do
      if inside:find('[%z\1-\31]') then return false end
    end
    local bare = plain:gsub('"[^"]*"', '')
    bare = bare:gsub('true', ''):gsub('false', ''):gsub('null', '')
    if bare:find('[^%s{}%[%],:%d%.eE+-]') then return false end
    for number in bare:gmatch('[%d%.eE+-]+') do
      if not is_number(number) then return false end
    end
    return true
  end

  function read_json(text)
    if #text > TEXT_MAX then return nil end
    local good, state = pcall(cjson.decode, text)
    if not good or type(state) ~= 'table' or not is_strict(text) then return nil end
    if type(state.t) ~= 'number' or type(state.v) ~= 'number' then return nil end
    return state.t, state.v
  end
end

local claims = #KEYS
local states, odd -- as text, later as the reply has them; whether a lone one is of another type
if claims > 1 then
  states = call('MGET', unpack(KEYS))
else
  local state = redis.pcall('GET', KEYS[1])
  if type(state) == 'table' then
    odd = state.err:find('WRONGTYPE', 1, true)
    if not odd then return state end
    state = false
  end
  states = {state}
end

local requests, outcomes = 0 -- what became of those that are not done, by request
local lived, life -- the last time to live, as a number and as text

-- Most calls are one run of requests for one permit each: the same as below, without detours.
if left == claims and operation == REQUEST and not twice then
  local most, least, short = burst + 1, -delay - rate * TICK, expiry - 1
  requests = claims
  for i = 1, claims do
    local text, outcome, level, stamp = states[i], DONE, 0, now
    if text then
      local t, v
      if json then
        t, v = read_json(text)
        states[i] = t and pack('<dd', t, v)
      elseif #text == 16 then
        t, v = unpacked('<dd', text)
      end
      -- Times 0, an infinity or a NaN isn't 0.
      if t and t * 0 + v * 0 == 0 then
        if now > t then level = v - (now - t) * rate else level, stamp = v, t end
        -- Also a -0.
        if level <= 0 then level = 0 end
      else
        outcome, states[i] = UNREADABLE + 1, NONE
      end
    else
      if odd or claims > 1 and call('EXISTS', KEYS[i]) == 1 then outcome = UNREADABLE + 1 end
      states[i] = NONE
    end
    local value = level + cost
    if outcome == DONE and most - value < least then outcome = REJECTED end
    if outcome == DONE then
      local live = value / rate
      live = live <= short and expiry or math.ceil(live) + 1
      if live > LONGEST then live = LONGEST end
      if live ~= lived then lived, life = live, string.format('%.0f', live) end
      text = json and string.format('{"t":%.17g,"v":%.17g}', stamp, value) or pack('<dd', stamp, value)
      call('SETEX', KEYS[i], life, text)
    else
      outcomes = outcomes or {}
      outcomes[i] = outcome
    end
  end
  claims = 0
end

local later = twice and {} -- what this call itself has written, by key; false for what it removed
local rates, bursts, delays, expiries, ts, levels, texts -- of a run with several claims
local claim = 0

while claim < claims do
  local outcome, missing, t, level, text = DONE, false
  requests = requests + 1
  if len > 1 and not rates then
    rates, bursts, delays, expiries, ts, levels, texts = {rate}, {burst}, {delay}, {expiry}, {}, {}, {}
    for i = 2, len do
      rates[i], bursts[i], delays[i], expiries[i], at = unpacked('<dddd', args, at)
    end
  end

  for i = 1, len do
    if rates then rate, burst, delay = rates[i], bursts[i], delays[i] end
    text = states[claim + i]
    if twice and later[KEYS[claim + i]] ~= nil then text = later[KEYS[claim + i]] end
    local packed, v = text or NONE
    t, level = false, 0
    if text then
      if json then
        t, v = read_json(text)
        if t then packed = pack('<dd', t, v) end
      elseif #text == 16 then
        t, v = unpacked('<dd', text)
      end
      if t and t * 0 + v * 0 == 0 then
        level = now > t and v - (now - t) * rate or v
        if level <= 0 then level = 0 end
      else
        t, packed = false, NONE
        if operation ~= RESET and outcome < UNREADABLE then outcome = UNREADABLE + i end
      end
    else
      missing = true
    end
    states[claim + i] = packed
    if operation <= PEEK and outcome == DONE and
        burst + 1 - (level + cost) < -delay - rate * TICK then
      outcome = REJECTED
    end
    if rates then ts[i], levels[i], texts[i] = t, level, text end
  end

  if missing and outcome < UNREADABLE then
    for i = 1, len do
      if rates then text = texts[i] end
      if not text and (odd or #KEYS > 1 and call('EXISTS', KEYS[claim + i]) == 1) then
        if not twice or later[KEYS[claim + i]] == nil then
          outcome = UNREADABLE + i
          break
        end
      end
    end
  end

  if outcome == DONE and operation ~= PEEK then
    for i = 1, len do
      if rates then t, level, rate, expiry = ts[i], levels[i], rates[i], expiries[i] end
      local key = KEYS[claim + i]
      local stamp = (t and t > now) and t or now
      local value
      if operation == REQUEST then
        value = level + cost
      elseif operation == CHARGE then
        value = level + cost
        if value > FULL then value = FULL end
      elseif operation == RESET then
        call('DEL', key)
        if twice then later[key] = false end
      elseif t then
        local back = cost
        if operation == GIVE_BACK and stamp > taken_at then back = cost - (stamp - taken_at) * rate end
        value = back > 0 and level - back or level
        if value < 0 then value = 0 end
      end
      if value then
        local live = value / rate
        live = live <= expiry - 1 and expiry or math.ceil(live) + 1
        if live > LONGEST then live = LONGEST end
        if live ~= lived then lived, life = live, string.format('%.0f', live) end
        text = json and string.format('{"t":%.17g,"v":%.17g}', stamp, value) or pack('<dd', stamp, value)
        call('SETEX', key, life, text)
        if twice then later[key] = text end
      end
    end
  end

  if outcome ~= DONE then
    outcomes = outcomes or {}
    outcomes[requests] = outcome
  end
  claim, left = claim + len, left - 1
  if left == 0 and claim < claims then
    left, operation, len, cost, taken_at, rate, burst, delay, expiry, at =
      unpacked('<BBBdddddd', args, at)
    rates = nil
  end
end

local told = '\1'
if outcomes then
  for i = 1, requests do outcomes[i] = string.char(outcomes[i] or DONE) end
  told = table.concat(outcomes)
elseif requests > 1 then
  told = told:rep(requests)
end
return pack('<d', now) .. told .. (states[2] and table.concat(states) or states[1])
