// Says what is wrong with the messages of languages:
//   npm run check:locale -- ja pt-BR    these, all without an argument
import { languagesIn } from '../../src/tenant/languages.ts';
import { faultsOf } from './faults.ts';
import { LOCALES, messagesOf } from './messages.ts';

const asked = process.argv.slice(2);
for (const tag of asked.length > 0 ? asked : languagesIn(LOCALES)) {
  const faults = faultsOf(tag);
  const count = Object.keys(messagesOf(tag)).length;
  process.stdout.write(
    `${[...faults, `${count} messages, ${faults.length} faults`].map((one) => `${tag}  ${one}\n`).join('')}`,
  );
  if (faults.length > 0) process.exitCode = 1;
}
