// Lists how many of our files and functions run in five common requests: the distance that somebody covers who reads such a
// request from end to end. `node bench/journeys.ts`; with the files by name: `FILES=1`.
import { journeys } from '../test/support/journeys.ts';

for (const [name, files] of await journeys()) {
  const folders = new Set(files.map(({ path }) => path.split('/').slice(0, -1).join('/')));
  const functions = files.reduce((sum, { ran }) => sum + ran, 0);
  console.log(`${name}: ${files.length} files in ${folders.size} folders, ${functions} functions`);
  if (process.env.FILES !== undefined) for (const { path, ran } of files) console.log(`  ${path} ${ran}`);
}
