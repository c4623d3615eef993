// Times as a person reads them, in the time zone of the reader.

/** The time alone if it is of today, else with its day, and with its year if that is another one. */
function readable(moment) {
  const date = new Date(moment);
  const now = new Date();
  const day = date.toDateString() === now.toDateString() ? {} : { day: "numeric", month: "short" };
  if (date.getFullYear() !== now.getFullYear()) day.year = "numeric";
  return date.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** Make the times that are in the page readable; their titles stay exact. */
for (const one of document.querySelectorAll("time")) one.textContent = readable(one.dateTime);
