#!/usr/bin/env node
// The `gatehouse` command. What it does is loaded only where it can run: an older Node.js would end with the name of
// a module that it has not got.
import { createRequire } from 'node:module';
import { isOlder } from './node-version.ts';

const { engines } = createRequire(import.meta.url)('../package.json') as { engines: { node: string } };
const needed = engines.node.replace(/^>=/, '');

if (isOlder(process.versions.node, needed)) {
  process.stderr.write(`gatehouse needs Node.js ${needed} or newer, and this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  await import('./commands.ts');
}
