// The process: starts the server, announces its address, and stops it on a signal. This file and those that it imports
// statically are JavaScript: for TypeScript that is not in the compile cache Node.js would load its compiler, 20 MB, at
// every start.
import { keepCompiledCode } from './runtime/compile-cache.js';
import { leaveOutHttpClient } from './runtime/http-client.js';
import { resolveWithoutFileSystem } from './runtime/module-resolution.js';

keepCompiledCode(process.env.DATA_DIR);
leaveOutHttpClient();
resolveWithoutFileSystem();
const { startProcess } = await import('./commands/start.ts');
await startProcess(process.env, process.stdout);
