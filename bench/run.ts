// Runs all benchmarks, or those named: `npm run bench -- token store`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const chosen = process.argv.slice(2);
for (const name of chosen.length > 0 ? chosen : ['store', 'token', 'passwordless']) {
  console.log(`\n# ${name}`);
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const { status } = spawnSync(process.execPath, [file], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
