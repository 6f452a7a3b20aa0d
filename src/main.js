// The process: starts the server, says where it is, and stops it when asked to. JavaScript, as are the files that it imports
// first: for TypeScript that was not kept yet Node.js would load its compiler, 20 MB, at every start.
import { keepCompiledCode } from './runtime/compile-cache.js';
import { leaveOutHttpClient } from './runtime/http-client.js';
import { takePathsAsTheyStand } from './runtime/own-modules.js';

keepCompiledCode(process.env.DATA_DIR);
leaveOutHttpClient();
takePathsAsTheyStand();
const { runServer } = await import('./run.ts');
await runServer(process.env, process.stdout);
