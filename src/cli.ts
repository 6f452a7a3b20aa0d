#!/usr/bin/env node
// The `gatehouse` command. Loads the rest only on a supported Node.js: an older one would fail with the name of a missing
// module.
import { createRequire } from 'node:module';
import { isOlder } from './node-version.ts';
import { keepCompiledCode } from './runtime/compile-cache.js';
import { leaveOutHttpClient } from './runtime/http-client.js';

const { engines } = createRequire(import.meta.url)('../package.json') as { engines: { node: string } };
const needed = engines.node.replace(/^>=/, '');

if (isOlder(process.versions.node, needed)) {
  process.stderr.write(`gatehouse needs Node.js ${needed} or newer, and this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  // Other commands may only look, and leave nothing behind.
  const [command = 'start'] = process.argv.slice(2);
  if (command === 'start') keepCompiledCode(process.env.DATA_DIR);
  leaveOutHttpClient();
  const { runCommand } = await import('./commands.ts');
  await runCommand(process.argv.slice(2), process);
}
