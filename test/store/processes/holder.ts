// Opens a store and keeps it open until it is killed; prints `open`, or the reason why not.
import { openStore } from '../../../src/store/open.ts';

try {
  await openStore({ dataDir: process.argv[2] ?? '', clock: Date.now });
  process.stdout.write('open\n');
  setInterval(() => {}, 60_000);
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : error}\n`);
}
