// Searches for orders that are made for the settings. They take a while, so they run on request only:
// `best` is the shortest of five searches and of the catalogue in the memory limit, as heddle-schedule show best
// finds it; `refined NAME` has the computations of NAME and keeps no more activations on any rank.
const bestName = 'best', refinedMark = 'refined ';
const searchedWork = ['1f1b', 'zb-h1', 'zb-v', 'interleaved', 'interleaved-zb1p'];
const searchEffort = 0.2;   // a fifth of the program's swaps
const searches = new Map();  // results, by name and settings
const isSearched = (name) => name === bestName || name.startsWith(refinedMark);
const searchKey = (name) => `${name} ${JSON.stringify(request(''))}`;
const searchAbout = (name) => name === bestName ? 'the shortest orders that are found for these times and this memory'
  : 'the shortest orders that are found with the computations of this schedule and the activations that each rank keeps';

// One search after another, so that the page can be used between them. It ends if a setting changes, or if the files
// of a plan replace the settings. If no search could run, the result is its error: the catalogue alone is no search.
async function search(name, say) {
  const key = searchKey(name), base = request('');
  const jobs = name === bestName
    ? [...searchedWork.map((work) => [work, { search: 1, effort: searchEffort }]),
       ...catalogue.filter((entry) => entry.synchronous && !entry.branches).map((entry) => [entry.name, {}])]
    : [[name.slice(refinedMark.length), { search: 'kept', effort: searchEffort }]];
  let best = null, why = null, failed = null, searched = 0;
  for (const [work, how] of jobs) {
    if (how.search) say(`Searching: the computations of ${work}.`);
    await new Promise((done) => setTimeout(done, how.search ? 20 : 0));
    if (isPlanned() || searchKey(name) !== key) return;
    const explorer = new Explorer();
    try {
      const report = JSON.parse(explorer.ask({ ...base, ...how, schedule: work }));
      if (how.search) ++searched;
      if (excessOf(report) || (best && report.makespan >= best.report.makespan)) continue;
      best = { explorer, report: { ...report, found: report.found || work } };
    } catch (error) {
      why = error;
      // A search also ends without orders if the memory or the shape does not allow any.
      if (how.search && !error.answer?.infeasible) failed = failed || error;
    }
  }
  if (searches.size > 8) searches.delete(searches.keys().next().value);
  if (failed && !searched) best = null;
  searches.set(key, best ? { ...best, searched, failed } : { error: failed || why || new LibraryError({ error: 'no schedule of this shape fits the memory; give more memory, or more ranks' }) });
}
function runSearch(card, name) {
  card.search.disabled = true;
  return search(name, (text) => { card.note.textContent = text; }).then(() => {
    draw();
    if (document.activeElement === document.body) card.canvas.focus();  // the button is gone
  }).catch((error) => {
    card.search.disabled = false;
    showError(card, error);
  });
}
// Draws what a search has found for these settings, or offers to search.
function drawSearched(card, name) {
  clear(card, name);
  const done = searches.get(searchKey(name));
  card.search.hidden = Boolean(done);
  card.search.disabled = false;
  card.startSearch = () => runSearch(card, name);
  card.report = null;
  if (!done) {
    card.picture.drawn = null;
    card.canvas.hidden = card.files.hidden = true;
    card.stats.replaceChildren();
    card.note.textContent = `${name}: ${searchAbout(name)}. Nothing has been searched for these settings.`;
    return;
  }
  if (done.error) return showError(card, done.error);
  card.explorer = done.explorer;
  card.named = null;
  card.command = () => commandOf({ named: name === bestName ? bestName : name.slice(refinedMark.length) }) + (name === bestName ? '' : ' --refine');
  showReport(card, name, done.report);
  const { report } = done;
  card.note.textContent = [`${report.found}.`, report.bound > 0 && (report.bound < report.makespan * (1 - 1e-9)
    ? `It is ${percentOf(report.makespan / report.bound - 1)} above the lower bound of its computations.` : 'It is optimal for its computations.'),
    done.failed && `Not every search could run: ${done.failed.message}.`,
    done.searched > 0 && 'The copied command searches five times as long, so it may find a shorter one.'].filter(Boolean).join(' ');
}
