// Plans: a profile, a machine and a plan of heddle::json. The module's reader checks them, when they are
// opened and when they are drawn. A plan needs the two others; a profile and a machine do without a plan.
const planKinds = ['profile', 'machine', 'plan'];
let plans = {};        // by kind: { name, text, bytes, about }
const isPlanned = () => Boolean(plans.profile && plans.machine);

// The kind of a file with the "format" of heddle::json, or undefined. What else is in it, the library reads.
function formatOf(text) {
  try {
    return /^heddle-(profile|machine|plan)$/.exec(JSON.parse(text).format)?.[1];
  } catch (error) {
    return undefined;
  }
}
const plainName = (name) => name.replace(/[&=]/g, '_');
function openPlanFile(kind, name, text) {
  const { about } = JSON.parse(fileExplorer.ask({ do: 'read', kind, name: plainName(name) }, text));
  plans[kind] = { name, text, bytes: encoder.encode(text).length, about };
}
// What the module is asked for the plan: with its own schedule, or with that of a name.
function planRequest(named) {
  const asked = { do: 'plan' };
  for (const kind of planKinds) {
    if (!plans[kind]) continue;
    asked[kind] = plans[kind].bytes;
    asked[`${kind}-name`] = plainName(plans[kind].name);
  }
  if (!plans.plan) asked.microbatches = state.microbatches;
  if (named) asked.schedule = named;
  return [asked, planKinds.map((kind) => plans[kind]?.text ?? '').join('')];
}
// Says which files there are and which are missing. Settings that these files replace cannot be changed.
function showPlanFiles() {
  const known = planKinds.filter((kind) => plans[kind]), note = get('plan-note');
  note.hidden = !known.length;
  for (const group of ['presets', 'costs', 'messages', 'memory']) get(group).disabled = isPlanned();
  for (const key of Object.keys(values))
    if (values[key][0] === 'shape')
      for (const input of get(`value-${key}`).querySelectorAll('input'))
        input.disabled = isPlanned() && (Boolean(plans.plan) || key !== 'microbatches');
  if (!known.length) return;
  const missing = ['profile', 'machine'].filter((kind) => !plans[kind]);
  note.replaceChildren(
    make('ul', {}, ...known.map((kind) => make('li', { textContent: `${kind} ${plans[kind].name}: ${plans[kind].about}` }))),
    missing.length ? `Drop the ${missing.join(' and the ')} too: a plan is drawn for both.`
      : plans.plan ? 'Times and sizes are those of the files. The chosen schedules are drawn for the same plan.'
        : 'Times and sizes are those of the files. There is no plan: each rank has one stage, cut so that the slowest ' +
          'stage is as fast as possible, and a microbatch is one sample.');
}
