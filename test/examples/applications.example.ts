// The examples of applications that run in Node.js or in the browser.
import { logsInCallsAndLogsOut } from './log-in-call-log-out.ts';

const APPLICATIONS = ['angular', 'express', 'javascript', 'react', 'vue'];

for (const name of APPLICATIONS) logsInCallsAndLogsOut(name);
