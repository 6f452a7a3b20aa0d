// The examples of applications in other languages, each where its tools are installed: `npm run test:long`.
import { type ExampleOptions, isThere } from './example.ts';
import { logsInCallsAndLogsOut } from './log-in-call-log-out.ts';

const python: ExampleOptions = {
  setup: [
    ['python3', '-m', 'venv', '.venv'],
    ['.venv/bin/pip', 'install', '--quiet', '-r', 'requirements.txt'],
  ],
  command: ['.venv/bin/python', 'app.py'],
};

/** The examples, each with how it is started and a command that shows whether its tools are there. */
const LANGUAGES: Record<string, ExampleOptions & { needs: string[] }> = {
  fastapi: { ...python, needs: ['python3', '-m', 'venv', '--help'] },
  flask: { ...python, needs: ['python3', '-m', 'venv', '--help'] },
  go: { setup: [['go', 'build', '-o', 'example', '.']], command: ['./example'], needs: ['go', 'version'] },
  spring: { setup: [['mvn', '-q', '-B', 'compile']], command: ['./start.sh'], needs: ['mvn', '--version'] },
};

for (const [name, { needs, ...options }] of Object.entries(LANGUAGES)) {
  if (isThere(needs)) logsInCallsAndLogsOut(name, { ...options, hasApiWithin: true });
  else it.skip(`the example ${name}: \`${needs.join(' ')}\` fails here`);
}
