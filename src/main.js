// The process: starts the server, announces its address, and stops it on a signal. This file and the first that it
// imports are JavaScript: for TypeScript that is not in the compile cache Node.js would load its compiler, 20 MB, at
// every start.
import { checkNodeVersion } from './commands/node-version.js';

if (checkNodeVersion(import.meta.url)) {
  // Imported only now, because an older Node.js cannot load these files.
  const { keepCompiledCode } = await import('./runtime/compile-cache.js');
  const { leaveOutHttpClient } = await import('./runtime/http-client.js');
  const { resolveWithoutFileSystem } = await import('./runtime/module-resolution.js');
  keepCompiledCode(process.env.DATA_DIR);
  leaveOutHttpClient();
  resolveWithoutFileSystem();
  const { startProcess } = await import('./commands/start.ts');
  await startProcess(process.env, process.stdout);
}
