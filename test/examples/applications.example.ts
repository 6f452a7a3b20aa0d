// The examples of applications that run in Node.js or in the browser.
import { logsInCallsAndLogsOut } from './log-in-call-log-out.ts';

const APPLICATIONS = [
  'angular',
  'express',
  'fastify',
  'hono',
  'javascript',
  'nextjs',
  'nuxt',
  'react',
  'sveltekit',
  'vue',
];

for (const name of APPLICATIONS) logsInCallsAndLogsOut(name);
