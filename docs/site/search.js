// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Finds what search-index.js lists: [title, page, address, text, kind]. `allreduce`, `all_reduce`, `MPI_Allreduce` and
// `all reduce` are one word, because neighbouring words also count as one.
const common = new Set('a an and are as at by do for how i in is it my of on or the to use what with you your'.split(' '));

function wordsOf(text) {
  const parts = text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase().split(/[^a-z0-9]+/).filter((word) => word && word !== 'mpi');
  const stems = parts.map((word) => word.length > 4 ? word.replace(/(ings|ing|ies|es|s|ed)$/, '') : word);
  const joined = parts.slice(1).map((word, n) => parts[n] + word);
  return { single: stems.filter((word, n) => !common.has(parts[n])), joined, whole: parts.join('') };
}

function search(entries, query, most = 30) {
  search.fields ||= entries.map(([title, , , text, kind]) => {
    const head = wordsOf(kind === 'task' ? `${title} ${text}` : title), body = wordsOf(text);
    return { head: new Set([...head.single, ...head.joined, head.whole]), body: new Set([...body.single, ...body.joined]), whole: head.whole };
  });
  const { fields } = search;
  const asked = wordsOf(query), terms = [...new Set([...asked.single, ...asked.joined])];
  // A word that few entries have says more.
  const weight = new Map(terms.map((term) => {
    const having = fields.reduce((count, { head, body }) => count + (head.has(term) || body.has(term)), 0);
    return [term, having ? Math.log(1 + fields.length / having) : 0];
  }));
  const single = new Set(asked.single);
  const scored = fields.map(({ head, body, whole }, n) => {
    let score = 0, met = 0;
    for (const term of terms) {
      const here = head.has(term) ? 3 : body.has(term) ? 1 : 0;
      if (here) met += single.has(term);
      score += here * weight.get(term);
    }
    if (whole === asked.whole || whole.endsWith(asked.whole)) score *= 1.5;
    score *= { task: 2.5, section: 1.2 }[entries[n][4]] || 1;
    return { n, score: score * (0.3 + met / Math.max(1, single.size)) };
  });
  return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.n - b.n).slice(0, most).map(({ n }) => entries[n]);
}

if (typeof document !== 'undefined') {
  const query = new URLSearchParams(location.search).get('q') || '';
  for (const input of document.querySelectorAll('input[type=search]')) input.value = query;
  if (query) {
    const hits = search(entries, query);
    document.getElementById('count').textContent = `${hits.length === 0 ? 'Nothing' : hits.length === 30 ? 'The best 30' : hits.length} found for: ${query}`;
    for (const [title, page, address, text, kind] of hits) {
      const link = document.createElement('a'), line = document.createElement('li'), about = document.createElement('p');
      link.href = address;
      link.textContent = title;
      about.textContent = text.slice(0, 200);
      line.append(link, ` ${page}, ${kind}`, about);
      document.getElementById('results').append(line);
    }
  }
} else {
  // node search.js INDEX QUERIES: does the first hit of each query lead where its line says? Lines: query, tab, addresses.
  const { readFileSync } = require('node:fs');
  const [index, queries] = process.argv.slice(2);
  const entries = JSON.parse(readFileSync(index, 'utf8').slice('const entries = '.length, -2));
  const lines = readFileSync(queries, 'utf8').split('\n').filter((line) => line && !line.startsWith('#')).map((line) => line.split('\t'));
  let right = 0;
  for (const [query, addresses] of lines) {
    const [hit] = search(entries, query);
    if (hit && addresses.split(' ').includes(hit[2])) ++right;
    else console.log(`${query}: ${hit ? hit[2] : 'nothing'}, expected ${addresses}`);
  }
  console.log(`${right} of ${lines.length} searches find the right page first`);
  process.exitCode = right * 12 >= lines.length * 11 ? 0 : 1;
}
