// The process: starts the server, says where it is, and stops it when asked to. JavaScript, as is the one file that it imports
// first: for TypeScript that was not kept yet Node.js would load its compiler, 20 MB, at every start.
import { keepCompiledCode } from './runtime/compile-cache.js';

keepCompiledCode(process.env.DATA_DIR);
const { runServer } = await import('./run.ts');
await runServer(process.env, process.stdout);
