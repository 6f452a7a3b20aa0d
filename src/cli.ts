#!/usr/bin/env node
// The `gatehouse` command. It loads the rest only on a supported Node.js: an older one would fail with the name of a
// missing module or export, which says nothing to an operator.
import { checkNodeVersion } from './commands/node-version.js';

if (checkNodeVersion(import.meta.url)) {
  // Imported only now, because an older Node.js cannot load these files.
  const { keepCompiledCode } = await import('./runtime/compile-cache.js');
  const { leaveOutHttpClient } = await import('./runtime/http-client.js');
  const { resolveWithoutFileSystem } = await import('./runtime/module-resolution.js');
  // Only `start` keeps compiled code on disk: other commands may run where nothing should be written.
  const [command = 'start', ...more] = process.argv.slice(2);
  if (command === 'start') keepCompiledCode(process.env.DATA_DIR);
  leaveOutHttpClient();
  resolveWithoutFileSystem();
  if (command === 'start' && more.length === 0) {
    // A start needs neither the other commands nor the parser of their arguments.
    const { startProcess } = await import('./commands/start.ts');
    await startProcess(process.env, process.stdout);
  } else {
    const { runCommand } = await import('./commands/index.ts');
    await runCommand(process.argv.slice(2), process);
  }
}
