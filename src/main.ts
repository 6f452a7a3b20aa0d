// The process: starts the server, says where it is, and stops it when asked to.
import { keepCompiledCode } from './runtime/compile-cache.ts';

keepCompiledCode(process.env.DATA_DIR);
const { runServer } = await import('./run.ts');
await runServer(process.env, process.stdout);
