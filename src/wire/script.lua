-- SPDX-License-Identifier: MIT
--
-- Decides a batch of independent requests, in order, by the model of src/model/bucket.h, with the
-- server's clock. One text for every configuration: limits come with the call.
--
-- KEYS: the bucket of each claim of each request, in order. ARGV[1], packed: 1 when a key comes twice,
--   else 0; then for each request operation, number of claims (from 1), cost, taken at; and for each
--   of its claims rate, burst, delay, whole seconds to live at least. ARGV[2]: "struct" or "json".
--
-- Reply, packed: the time; then for each request one byte for what became of it (1 done, 0 rejected,
-- 128 + i its claim i can't be read), and for each claim timestamp and value as they were before, all
-- bits set where there was none.
--
-- A later request sees what an earlier one took. A bucket that seems to have no state may be of
-- another type, which MGET doesn't tell: that is looked up before the first write of its request.
--
-- What costs time here are calls, new tables, and functions with the variables that they close over,
-- not arithmetic: hence one long body, no table for a lone claim, and one string to answer with.

-- Needed from Redis 3.2 to 4, where it lets a script write after it has read the clock.
if not redis.setresp then pcall(redis.replicate_commands) end

local REQUEST, PEEK, REFUND, CHARGE, RESET, GIVE_BACK = 0, 1, 2, 3, 4, 5
local TICK, FULL, LONGEST, TEXT_MAX = 2e-6, 1e15, 1e10, 4096
local REJECTED, DONE, UNREADABLE = 0, 1, 128
local NONE = '\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255\255'

local KEYS, args, json = KEYS, ARGV[1], ARGV[2] == 'json'
local call, pack, unpacked = redis.call, struct.pack, struct.unpack

local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000

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

local states = call('MGET', unpack(KEYS))
local twice = args:byte() == 1
local later = twice and {} -- what this call itself has written, by key; false for what it removed
local reply, filled = {pack('<d', now)}, 1
local lives = #KEYS > 1 and {} -- seconds to live as text, which a call would make anew each time
local ts, levels, rates, expiries, texts
local at, claim, size = 2, 0, #args

while at <= size do
  local operation, len, cost, taken_at, rate, burst, delay, expiry
  operation, len, cost, taken_at, rate, burst, delay, expiry, at = unpacked('<BBdddddd', args, at)
  local place, outcome, t, level, text = filled + 1, DONE
  filled = place + len
  if len > 1 then ts, levels, rates, expiries, texts = {}, {}, {}, {}, {} end

  for i = 1, len do
    if i > 1 then rate, burst, delay, expiry, at = unpacked('<dddd', args, at) end
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
      -- Of an infinity or a NaN, x - x isn't 0.
      if t and t - t == 0 and v - v == 0 then
        level = now > t and v - (now - t) * rate or v
        -- Also a -0.
        if level <= 0 then level = 0 end
      else
        t, packed = false, NONE
        if operation ~= RESET and outcome < UNREADABLE then outcome = UNREADABLE + i end
      end
    end
    reply[place + i] = packed
    if operation <= PEEK and outcome == DONE and
        burst + 1 - (level + cost) < -delay - rate * TICK then
      outcome = REJECTED
    end
    if len > 1 then ts[i], levels[i], rates[i], expiries[i], texts[i] = t, level, rate, expiry, text end
  end

  if outcome < UNREADABLE then
    for i = 1, len do
      if len > 1 then text = texts[i] end
      if not text and call('EXISTS', KEYS[claim + i]) == 1 then
        if not twice or later[KEYS[claim + i]] == nil then
          outcome = UNREADABLE + i
          break
        end
      end
    end
  end

  if outcome == DONE and operation ~= PEEK then
    for i = 1, len do
      if len > 1 then t, level, rate, expiry = ts[i], levels[i], rates[i], expiries[i] end
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
        if lives then
          local number = lives[live]
          if not number then
            number = string.format('%.0f', live)
            lives[live] = number
          end
          live = number
        end
        text = json and string.format('{"t":%.17g,"v":%.17g}', stamp, value) or pack('<dd', stamp, value)
        call('SETEX', key, live, text)
        if twice then later[key] = text end
      end
    end
  end

  reply[place] = outcome == DONE and '\1' or string.char(outcome)
  claim = claim + len
end

return table.concat(reply)
