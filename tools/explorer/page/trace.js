// Reads a trace file of heddle::trace (Chrome trace events) as the lines that the module takes.
function readTrace(text) {
  let root;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new LibraryError({ error: `the file is not JSON, or it is incomplete: ${error.message}` });
  }
  const wrong = (what) => { throw new LibraryError({ error: `the file is no trace, profile, machine or plan of Heddle: ${what}` }); };
  if (root && root.format === 'heddle-program') throw new LibraryError({ error:
    'this is a tensor program of Heddle, and the page draws schedule files, traces and plans. Run heddle-plan program --help for what a program is for' });
  const events = root && root.traceEvents;
  if (!Array.isArray(events)) wrong('it has no traceEvents');
  if (root.deviceProperties || root.schemaVersion || events.some((event) => event && ['kernel', 'cpu_op'].includes(event.cat)))
    wrong('it is one of torch.profiler (Kineto), whose kernels and operators do not say which stage and microbatch they are for. ' +
          'Drop the schedule file of torch.distributed.pipelining to simulate the schedule, with the measured times as settings');
  const processes = new Map(), tracks = new Map(), names = [];
  for (const event of events) {
    if (!event || typeof event !== 'object' || event.ph !== 'M') continue;
    const name = String(event.args && event.args.name);
    if (event.name === 'process_name') {
      const found = /^(?:(.*): )?rank (\d+)$/.exec(name);
      if (!found) continue;
      const timeline = found[1] || '';
      if (!names.includes(timeline)) names.push(timeline);
      processes.set(event.pid, { timeline: names.indexOf(timeline), rank: Number(found[2]) });
    } else if (event.name === 'thread_name') {
      tracks.set(`${event.pid}/${event.tid}`, name);
    }
  }
  if (processes.size === 0) wrong('no process is a rank');
  const slices = new Map();
  for (const event of events) {
    if (!event || typeof event !== 'object' || event.ph !== 'X') continue;
    const place = processes.get(event.pid), track = tracks.get(`${event.pid}/${event.tid}`) || '';
    if (!place || track.startsWith('groups of')) continue;
    const { action, stage, microbatch } = event.args || {};
    const start = event.ts * 1e-6, end = (event.ts + event.dur) * 1e-6;
    if (![action, stage, microbatch, start, end].every(Number.isFinite))
      wrong(`a slice is not complete: ${JSON.stringify(event).slice(0, 120)}`);
    const key = `${place.timeline}/${action}`;
    const peer = /(send to|receive from) (\d+)/.exec(track);
    let slice = slices.get(key);
    if (!slice) {
      slice = { kind: event.cat, timeline: place.timeline, action, stage, item: microbatch,
                from: place.rank, to: place.rank, start, end, arrival: end };
      slices.set(key, slice);
    }
    if (peer && peer[1] === 'send to') {
      Object.assign(slice, { from: place.rank, to: Number(peer[2]), start, end });
      slice.arrival = Math.max(slice.arrival, end);
    } else if (peer) {
      Object.assign(slice, { from: Number(peer[2]), to: place.rank });
      slice.arrival = Math.max(slice.start, end);
    }
  }
  const lines = [];
  for (const s of slices.values())
    lines.push([String(s.kind).replace(/[,\n]/g, ' '), s.timeline, s.action, s.from, s.to, s.stage, s.item, s.start, s.end,
                s.arrival].join(','));
  const numbers = root.heddle !== undefined && root.heddle.unit === '';  // written by this page for costs without a unit
  return { names, lines: lines.join('\n') + '\n', numbers };
}
