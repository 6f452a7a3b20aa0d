// Importing and exporting users in the console.
import { readFileSync } from 'node:fs';
import https from 'node:https';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { JOB_FAULTS } from '../../src/records/state/job-faults.ts';
import { addressOf, type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { sendSlowly } from '../support/slow-body.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { PATIENCE } from '../support/wait-until.ts';

const TRANSFER = '/console/users/transfer';
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll("'", '&#39;');
const HOSTILE = '<img src=x onerror=alert(1)>';

/** Returns the form as a browser sends it, with the token first. */
function multipart(fields: Record<string, string>, file: string) {
  const boundary = 'console-boundary';
  const part = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const sent = `--${boundary}\r\nContent-Disposition: form-data; name="users"; filename="users.json"\r\nContent-Type: application/json\r\n\r\n${file}\r\n`;
  const body = `${Object.entries(fields)
    .map(([name, value]) => part(name, value))
    .join('')}${sent}--${boundary}--\r\n`;
  const headers = {
    'content-type': `multipart/form-data; boundary=${boundary}`,
    'content-length': String(Buffer.byteLength(body)),
  };
  return { headers, body };
}

describe('importing and exporting users in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: UNLIMITED.attackProtection.rateLimits } },
    });
    owner = await openConsole(server);
  });
  after(() => server.stop());

  const page = () => owner.get(TRANSFER);
  const tokenOf = async () => /name="console-token" content="([^"]+)"/.exec((await page()).text)?.[1] ?? '';
  const connection = async () => /<option value="(con_[^"]+)">users</.exec((await page()).text)?.[1] ?? '';
  const upload = async (fields: Record<string, string>, file: string) => {
    const { headers, body } = multipart(fields, file);
    return owner.agent.request(`${TRANSFER}/import`, { method: 'POST', headers, body });
  };
  /** Returns the page of a job once it is done; it runs in the background. */
  const finished = async (location: string) => {
    const until = Date.now() + PATIENCE;
    let shown = await owner.get(new URL(location).pathname);
    while (shown.text.includes('id="open-job"') && Date.now() < until)
      shown = await owner.get(new URL(location).pathname);
    expect(shown.text).to.not.contain('id="open-job"');
    return shown;
  };

  it('imports a file as a job, and shows why each refused user was refused', async () => {
    const users = [
      { email: 'one@import.test', name: 'One' },
      { email: 'two@import.test', password_hash: 'nonsense' },
      { email: HOSTILE, name: HOSTILE },
      { email: 'ada@example.test' },
    ];
    const fields = { _csrf: await tokenOf(), connection_id: await connection() };
    const begun = await upload(
      fields,
      users
        .map((one) => JSON.stringify(one))
        .join('\n')
        .replace('\n{"email":"ada', '\n\n{"email":"ada'),
    );
    expect(begun.status, begun.text).to.equal(303);
    const job = await finished(begun.location);
    expect(await server.users.withEmail('one@import.test')).to.have.length(1);
    expect(job.text).to.contain('two@import.test').and.to.contain('ada@example.test');
    expect(job.text).to.contain('&lt;img src=x').and.to.not.contain('<img src=x');
    expect(job.text).to.match(/Refused<\/dt><dd>3</);
    const line = (n: number, name: string) => new RegExp(`Line ${n}</td>\\s*<td[^>]*><bdi>${name}`);
    expect(job.text).to.match(line(2, 'two@import.test')).and.match(line(5, 'ada@example.test'));
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const logged = JSON.stringify(records);
    expect(logged).to.contain('/jobs/users-imports').and.to.not.contain('one@import.test');
  });

  it('imports nothing for an administrator whose role was taken away during the upload', async () => {
    const editor = await openConsole(server, 'editor');
    const [user] = await server.administrators.withEmail(addressOf('editor'));
    const { text } = await editor.get(TRANSFER);
    const fields = {
      _csrf: /name="console-token" content="([^"]+)"/.exec(text)?.[1] ?? '',
      connection_id: await connection(),
    };
    const { headers, body } = multipart(fields, JSON.stringify([{ email: 'late@import.test' }]));
    const cookie = editor.agent
      .cookies()
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
    const request = { method: 'POST', path: `${TRANSFER}/import`, headers: { ...headers, cookie }, body };
    const role = `/console/administrators/${user?.id.split('|')[1]}/role`;
    const answer = await sendSlowly(server, request, async () => {
      expect((await owner.post(role, { role: 'viewer' })).status).to.equal(303);
    });
    await owner.post(role, { role: 'editor' });
    expect(answer.status).to.equal(403);
  });

  it('words every kind of fault in the reader’s language', async () => {
    const email = (n: number) => `wrong${n}@import.test`;
    const hash = { algorithm: 'md5', hash: { value: 'x', encoding: 'rot13' } };
    const refused: Record<string, object | number> = {
      format: { email: HOSTILE },
      noAddress: {},
      type: { email: email(1), name: 5 },
      minimum: { email: email(2), name: '' },
      maximum: { email: email(3), name: 'x'.repeat(301) },
      unknown: { email: email(4), [HOSTILE]: 1 },
      reserved: { email: email(5), app_metadata: { blocked: true } },
      username: { username: email(6) },
      hash: { email: email(7), password_hash: 'x' },
      choice: { email: email(8), custom_password_hash: hash },
      missing: { email: email(9), custom_password_hash: {} },
      twoHashes: { email: email(10), password_hash: 'x', custom_password_hash: hash },
      there: { email: 'ada@example.test' },
      twice: { email: 'ada@example.test' },
    };
    const fields = { _csrf: await tokenOf(), connection_id: await connection() };
    const { location } = await upload(fields, JSON.stringify(Object.values(refused)));
    const { text } = await finished(location);
    expect(text).to.match(new RegExp(`Refused</dt><dd>${Object.keys(refused).length}<`));
    const wordsIn = (language: string): Record<string, string> =>
      JSON.parse(
        readFileSync(new URL(`../../views/locales/${language}/console/users.json`, import.meta.url), 'utf8'),
      );
    for (const language of ['en', 'de', 'ar']) {
      const words = { ...wordsIn('en'), ...wordsIn(language) };
      const wordsOf = (name: string) =>
        words[`console.users.job.fault.${name}`]?.split(/\{\w+\}/).map(escaped) ?? [];
      for (const name of JOB_FAULTS) expect(wordsOf(name).join(''), `${language} ${name}`).to.not.equal('');
      const page = await owner.get(new URL(location).pathname, { 'accept-language': language });
      for (const name of Object.keys(refused))
        expect(page.text, `${language} ${name}`).to.contain(
          wordsOf(name).toSorted((a, b) => b.length - a.length)[0],
        );
      expect(page.text).to.not.contain('<img src=x').and.not.contain('rot13');
    }
  });

  it('updates existing users when asked to', async () => {
    const fields = { _csrf: await tokenOf(), connection_id: await connection(), upsert: 'yes' };
    const begun = await upload(fields, JSON.stringify([{ email: 'ada@example.test', name: 'Ada King' }]));
    await finished(begun.location);
    const [ada] = await server.users.withEmail('ada@example.test');
    expect(ada?.name).to.equal('Ada King');
  });

  it('rejects foreign forms, missing, invalid and large files, and an unknown connection', async () => {
    const fields = { _csrf: await tokenOf(), connection_id: await connection() };
    expect((await upload({ ...fields, _csrf: 'guessed' }, '[]')).status).to.equal(403);
    expect((await upload(fields, ' ')).text).to.contain('Choose a file with users.');
    const none = await finished((await upload(fields, 'no users at all')).location);
    expect(none.text).to.contain('neither a JSON array nor one JSON object a line');
    for (const [file, place] of Object.entries({
      '{"email":"a@import.test"}\n\n{"email":"secret@import.test",}': 'line 3, column 31',
      '[\n  {"email":"a@import.test"},\n  {"email" "secret@import.test"}\n]': 'line 3, column 12',
      '[{"email":"secret@import.test"}': 'line 1, column 32',
      '{"email":"a@import.test"}\n5': 'line 2.',
    })) {
      const { text } = await finished((await upload(fields, file)).location);
      expect(text, file).to.contain(`Reading it failed at ${place}`).and.to.not.contain('secret@');
    }
    const empty = (await upload(fields, '{"email":"a@import.test"}\n{')).location;
    await finished(empty);
    for (const [language, words] of Object.entries({
      de: 'Das Lesen scheiterte in Zeile 2, Spalte 2.',
      ar: 'فشلت القراءة في السطر',
    }))
      expect((await owner.get(new URL(empty).pathname, { 'accept-language': language })).text).to.contain(
        words,
      );
    const array = JSON.stringify([{ email: 'fine@import.test' }, { email: 'ada@example.test' }]);
    expect((await finished((await upload(fields, array)).location)).text)
      .to.contain('User 2</td>')
      .and.to.contain('The user already exists');
    expect((await upload(fields, 'x'.repeat(600_000))).status).to.equal(413);
    const nowhere = await upload({ ...fields, connection_id: 'con_none' }, '[{}]');
    expect(nowhere.status).to.equal(400);
    expect(nowhere.text).to.contain('The connection does not exist');
    expect((await owner.get(`${TRANSFER}/job_none`)).status).to.equal(404);
  });

  for (const format of ['json', 'csv']) {
    it(`exports users as ${format}, with a link for the session of an administrator`, async () => {
      const begun = await owner.post(`${TRANSFER}/export`, { format });
      const job = await finished(begun.location);
      const link = /href="([^"]*\/file)"/.exec(job.text)?.[1] ?? '';
      const file = await fetchBytes(link);
      const text = gunzipSync(file).toString();
      expect(text).to.contain('ada@example.test').and.to.not.contain('password');
      expect(text.startsWith(format === 'csv' ? 'user_id,' : '{')).to.equal(true);
    });
  }

  /** Returns the bytes at a link of the server. */
  async function fetchBytes(link: string): Promise<Buffer> {
    const cookie = owner.agent
      .cookies()
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
    return new Promise((resolve, reject) => {
      https
        .get(link, { ca: server.ca, headers: { cookie } }, (answer) => {
          const chunks: Buffer[] = [];
          answer.on('data', (chunk: Buffer) => chunks.push(chunk));
          answer.once('end', () => resolve(Buffer.concat(chunks)));
        })
        .once('error', reject);
    });
  }
});
