// The lag below the members, and its text for those who do not see it.

const lagChart = document.getElementById("lag");
const lagText = document.getElementById("lag-text");

/** A number of records with separators. */
function figure(number) {
  return number === null ? "not known" : number.toLocaleString("en");
}

function lagOf([, , committed, end]) {
  return end === null ? null : Math.max(0, end - committed);
}

/** What the chart shows, in a sentence. */
function lagInWords({ samples, partitions }) {
  const known = samples.filter(([, records]) => records !== null);
  const [, now] = samples[samples.length - 1];
  const [time, most] = known.reduce((one, other) => (other[1] > one[1] ? other : one));
  const hidden = partitions.filter(([, , , end]) => end === null).length;
  const without = hidden ? `, without ${hidden} whose end the brokers do not tell` : "";
  return `${figure(now)} records now in ${counted(partitions.length, "partition")}${without}. ` +
    `The most of ${counted(samples.length, "sample")}: ${figure(most)}, on ${day(time)} at ${clock(time, 0)} ${ZONE}.`;
}

function table(heads, rows, numbersFrom) {
  const made = element("table");
  const line = (tag, cells) => {
    const row = element("tr");
    row.append(...cells.map((cell, place) => element(tag, place >= numbersFrom ? "number" : "", cell)));
    return row;
  };
  made.append(line("th", heads), ...rows.map((row) => line("td", row)));
  return made;
}

function folded(title, content) {
  const made = element("details");
  made.append(element("summary", "", title), content);
  return made;
}

function writeLag() {
  const { lag } = page;
  if (!lag) return;
  lagText.hidden = false;
  if (lag.absent) {
    lagText.append(element("p", "", `The lag is not shown: ${lag.absent}.`));
    return;
  }
  lagChart.hidden = false;
  const words = lagInWords(lag);
  lagChart.setAttribute("aria-label", `Lag by time: ${words}`);
  const samples = lag.samples.map(([time, records]) => [`${day(time)} ${clock(time, 0)}`, figure(records)]);
  const partitions = lag.partitions.map((one) => [
    `${one[0]} ${one[1]}`, figure(one[2]), figure(one[3]), figure(lagOf(one)),
  ]);
  lagText.append(
    element("p", "", words),
    folded("By partition, now", table(["partition", "committed", "end", "lag"], partitions, 1)),
    folded("By time", table([ZONE, "records"], samples, 1)),
  );
}

/** The lag on the scale of time of the members; a gap where it is not known. */
function drawLag() {
  const { context, width, height } = contextOf(lagChart);
  const { samples } = page.lag;
  const most = Math.max(1, ...samples.map(([, records]) => records ?? 0));
  const yOf = (records) => height - 6 - (records / most) * (height - 14);
  context.save();
  context.beginPath();
  context.rect(labelWidth(), 0, width - labelWidth(), height);
  context.clip();
  context.fillStyle = context.strokeStyle = colours.focus;
  context.lineWidth = 1.5;
  let points = 0;
  let before = null;
  for (const [time, records] of samples) {
    const here = records === null ? null : [xOf(time), yOf(records)];
    if (here) {
      points += 1;
      context.fillRect(here[0] - 1.5, here[1] - 1.5, 3, 3);
    }
    if (here && before) {
      context.beginPath();
      context.moveTo(...before);
      context.lineTo(...here);
      context.stroke();
    }
    before = here;
  }
  context.restore();
  context.font = `11px ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = colours.dim;
  context.fillText("lag", 18, height / 2);
  const scale = figure(most);
  context.fillText(scale, labelWidth() - context.measureText(scale).width - 8, 9);
  context.fillText("0", labelWidth() - context.measureText("0").width - 8, height - 7);
  context.fillStyle = colours.line;
  context.fillRect(labelWidth() - 1, 0, 1, height);
  document.documentElement.dataset.lag = points;
}
