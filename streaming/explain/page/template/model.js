// The data of the page. streaming/explain/page/data.py says what each field is.

const page = JSON.parse(document.getElementById("data").textContent);
const SPAN = Math.max(1, page.last - page.first);
const IS_LOCAL = document.getElementById("picture").dataset.zone === "local";

/** The time zone of what is shown: the reader's on a server's page, UTC in a file, which others may read elsewhere. */
const ZONE = IS_LOCAL ? "local time" : "UTC";

const CATEGORIES = {
  arrive: "joined",
  leave: "left",
  expire: "expelled",
  change: "changed",
  other: "other",
};

const CATEGORY_OF = {
  "member joined": "arrive",
  "static member returned": "arrive",
  "member left": "leave",
  "member removed by another client": "leave",
  "poll interval exceeded": "expire",
  "session expired": "expire",
  "first join took too long": "expire",
  "member did not sync": "expire",
  "member did not rejoin": "expire",
  "member did not revoke its partitions": "expire",
  "subscription changed": "change",
  "cooperative member gave partitions up": "change",
  "member metadata changed": "change",
  "leader rejoined": "change",
  "topic changed": "change",
  "group changed its type": "change",
  "offsets reset by an operator": "change",
};

/** The sums of differences. */
function sums(differences) {
  let sum = 0;
  return Float64Array.from(differences, (difference) => (sum += difference));
}

const changeTimes = sums(page.times);

/** When a lane changed what it owned, and the sets that it owned from then on. */
function ownedBy(flat) {
  const places = sums(flat.filter((_, i) => i % 2 === 0));
  return {
    times: places.map((place) => changeTimes[place]),
    values: sums(flat.filter((_, i) => i % 2 === 1)),
    count: places.length,
  };
}

/** The times of commits. */
function commitsOf(flat) {
  const times = sums(flat.filter((_, i) => i % 2 === 0));
  return { times, count: times.length };
}

/** The place of the last of the sorted times that is not later than a time; -1 if all are. */
function lastUntil(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const rebalances = page.rebalances.map((one, number) => {
  const cause = one.causes[0];
  return {
    ...one,
    number,
    cause,
    category: CATEGORY_OF[cause.trigger] || "other",
    end: one.ended ?? SPAN,
    came: one.came || [],
    went: one.went || [],
    waits: one.waits || [],
  };
});

const lanes = page.lanes.map((lane, number) => ({
  number,
  name: lane.name,
  instance: lane.instance,
  label: lane.instance ? `${lane.instance} (${lane.name})` : lane.name,
  short: lane.instance || lane.name.replace(/ at [^ ]*$/, ""),
  stays: lane.stays.map(([id, from, to, reason, expelled, before]) => ({
    id,
    from,
    to: to ?? SPAN,
    hasEnded: to !== null,
    reason,
    expelled: expelled === 1,
    before: before === 1,
  })),
  owned: ownedBy(lane.owned),
  commits: commitsOf(lane.commits),
  refusals: [],
  caused: 0,
  text: [lane.name, lane.instance, ...lane.stays.map((stay) => stay[0])].join("\n").toLowerCase(),
}));

for (const one of rebalances) {
  if (one.cause.lane >= 0) lanes[one.cause.lane].caused += 1;
  one.text = one.causes.map((cause) => `${cause.trigger}\n${cause.text}\n${cause.member}`).join("\n").toLowerCase();
}

const refusals = page.refusals.map((one) => ({
  ...one,
  lines: [`refused ${one.what}${timesOf(one)}`, one.sender, one.text, `[${one.place}]`],
}));

for (const one of refusals) {
  if (one.lane < 0) continue;
  lanes[one.lane].refusals.push(one);
  lanes[one.lane].text += `\n${one.what}\n${one.sender}\n${one.text}`.toLowerCase();
}

/** How often requests that are alike were refused, in words. */
function timesOf(one) {
  return one.count === 1 ? "" : `, ${one.count} times until ${clock(one.last)}`;
}

const partitionsOfSet = new Array(page.sets.length);

/** The places of the partitions of a set. */
function partitionsOf(set) {
  if (partitionsOfSet[set] === undefined) {
    const found = [];
    let place = -1;
    for (const difference of page.sets[set]) {
      if (difference > 0) found.push((place += difference));
      for (let more = difference; more < 0; more++) found.push((place += 1));
    }
    partitionsOfSet[set] = found;
  }
  return partitionsOfSet[set];
}

/** The set that a lane owned at a time; -1 before its first. */
function setAt(lane, time) {
  const place = lastUntil(lane.owned.times, time);
  return place < 0 ? -1 : lane.owned.values[place];
}

/** A set in words: its topics, each with ranges of numbers. */
function setName(set) {
  const topics = new Map();
  for (const place of set < 0 ? [] : partitionsOf(set)) {
    const [topic, number] = page.partitions[place];
    if (!topics.has(topic)) topics.set(topic, []);
    const ranges = topics.get(topic);
    const last = ranges[ranges.length - 1];
    if (last && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const named = (ranges) => ranges.map(([low, high]) => (low === high ? low : `${low}-${high}`)).join(",");
  return [...topics].map(([topic, ranges]) => `${topic} ${named(ranges)}`).join("; ") || "none";
}

/** The stay of a lane at a time, if it had a member then. */
function stayAt(lane, time) {
  return lane.stays.find((stay) => stay.from <= time && time <= stay.to);
}

function pad(number, width) {
  return String(number).padStart(width, "0");
}

/** How far the shown time is ahead of UTC, in ms. */
function shiftAt(time) {
  return IS_LOCAL ? -60000 * new Date(page.first + time).getTimezoneOffset() : 0;
}

/** A date whose fields in UTC are those that are shown. */
function shownDate(time) {
  return new Date(page.first + time + shiftAt(time));
}

/** A time of the page; `precision` is a number of decimals of the second, or -1 for none. */
function clock(time, precision = 3) {
  const date = shownDate(time);
  const minutes = `${pad(date.getUTCHours(), 2)}:${pad(date.getUTCMinutes(), 2)}`;
  if (precision < 0) return minutes;
  const seconds = `${minutes}:${pad(date.getUTCSeconds(), 2)}`;
  return precision === 0 ? seconds : `${seconds}.${pad(date.getUTCMilliseconds(), 3)}`;
}

function day(time) {
  return shownDate(time).toISOString().slice(0, 10);
}

/** A number with its noun: "1 member", "2 members". */
function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A duration in ms, in words. */
function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3600000) return `${(ms / 60000).toFixed(1)} min`;
  if (ms < 172800000) return `${(ms / 3600000).toFixed(1)} h`;
  return `${(ms / 86400000).toFixed(1)} days`;
}
