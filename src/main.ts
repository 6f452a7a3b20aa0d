// The process: starts the server, says where it is, and stops it when asked to.
import { runServer } from './run.ts';

await runServer(process.env, process.stdout);
