// What the Management API says of a job that failed, and of users who were not imported, in the reader's language. It says so in
// English alone; what has no words here is shown as it was said.
import type { Locale } from '../../pages/locales.ts';

/** What is said, and the message key; named groups are the message's parameters. */
const SAID: readonly (readonly [RegExp, string])[] = [
  [/^The file holds no users\.$/, 'console.users.job.fault.empty'],
  [
    /^The users file is neither .* Reading it failed at line (?<line>\d+), column (?<column>\d+)\.$/,
    'console.users.job.fault.place',
  ],
  [/^The users file is neither .* Reading it failed at line (?<line>\d+)\.$/, 'console.users.job.fault.line'],
  [/^The users file is neither /, 'console.users.job.fault.refused'],
  [/^The connection does not exist\.$/, 'console.users.job.fault.connection'],
  [/^The job took longer than two hours\.$/, 'console.users.job.fault.long'],
  [/^An unexpected error occurred\.$/, 'console.users.job.fault.unexpected'],
  [/^The user already exist and upsert parameter is false$/, 'console.users.job.fault.there'],
  [/^The file has this user twice$/, 'console.users.job.fault.twice'],
  [/^A user with the same (?<path>\w+) exists$/, 'console.users.job.fault.same'],
  [/^Missing required property: (?<path>\w+)$/, 'console.users.job.fault.missing'],
  [/^A username must be no e-mail address/, 'console.users.job.fault.username'],
  [/^The user has second factors already$/, 'console.users.job.fault.factors'],
];

/** A text of a job, for the reader. */
export function jobWords({ text }: Pick<Locale, 'text'>, said: string): string {
  for (const [pattern, key] of SAID) {
    const found = pattern.exec(said);
    if (found !== null) return text(key, found.groups ?? {});
  }
  return said;
}
