// Texts of generated resource pages in the reader's language.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { fieldsOf as optionsOf } from '../../src/features/console/connections/console-connection-options.ts';
import { type Field, fieldsOf } from '../../src/features/console/resources/console-resource-fields.ts';
import { groupOf, placesOf, titleOf } from '../../src/features/console/resources/declared.ts';
import { STRATEGIES } from '../../src/records/connections/connections.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';

const english: Record<string, string> = JSON.parse(
  readFileSync(new URL('../../views/locales/en/console/declared.json', import.meta.url), 'utf8'),
);
const keysOf = (kind: string): string[] =>
  Object.keys(english).flatMap((key) =>
    key.startsWith(`console.${kind}.`) ? [key.slice(`console.${kind}.`.length)] : [],
  );
const PLACES = [...placesOf().values()];

describe('the messages for generated resources', () => {
  const flat = (fields: readonly Field[]): Field[] =>
    fields.flatMap((field) => [field, ...flat(field.fields ?? [])]);
  const fields = PLACES.flatMap((place) =>
    [place.create, place.change, place.replace].flatMap((call) =>
      call?.body === undefined
        ? []
        : flat(fieldsOf(call.body)).map((field) => ({
            ...field,
            key: `${groupOf(place.path)}.${field.path}`,
          })),
    ),
  );

  it('belong to existing members, calls and options', () => {
    const members = fields.map(({ key }) => key);
    for (const key of keysOf('help')) expect(members, key).to.include(key);
    const summaries = PLACES.flatMap(({ create, change, replace, remove }) =>
      [create, change, replace, remove].map((call) => call?.summary),
    );
    for (const text of keysOf('doing')) expect(summaries, text).to.include(text);
    const options = Object.keys(STRATEGIES).flatMap((strategy) => {
      const { main, further } = optionsOf(strategy);
      return [...main, ...further].map(({ name }) => name);
    });
    for (const name of keysOf('option')) expect(options, name).to.include(name);
  });

  it('contain the help of every declared member of clients', () => {
    for (const { key, help } of fields)
      if (help !== undefined && key.startsWith('clients.'))
        expect(english[`console.help.${key}`], key).to.equal(help);
  });

  it('contain a title of every place and a text for each operation', () => {
    for (const { path, create, change, replace, remove } of PLACES) {
      // The title of `/users/:id` is that of the list.
      if (titleOf(path) !== '') expect(english, path).to.have.property(`console.title.${titleOf(path)}`);
      expect(english, path).to.have.property(`console.title.${titleOf(`/${groupOf(path)}`)}`);
      for (const call of [create, change, replace, remove])
        if (call !== undefined) expect(english, path).to.have.property(`console.doing.${call.summary}`);
    }
  });

  for (const group of ['connections', 'resource-servers', 'users', 'roles', 'organizations', 'tenants'])
    it(`explain the members of ${group}`, () => {
      expect(keysOf('help').filter((key) => key.startsWith(`${group}.`)).length).to.be.at.least(2);
    });
});

describe('generated resources in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  before(async () => {
    server = await startConsole();
    owner = await openConsole(server);
  });
  after(() => server.stop());

  for (const [language, title, doing, label, help] of [
    ['en', 'Roles', 'Create a role', 'Description', 'What it is for'],
    ['de', 'Rollen', 'Rolle anlegen', 'Beschreibung', 'Wozu sie da ist'],
    ['ar', 'الأدوار', 'إنشاء دور', 'الوصف', 'الغرض منه'],
  ] as const)
    it(`are shown in the reader’s language, with the API’s names beside: ${language}`, async () => {
      const { agent } = owner;
      const headers = { 'accept-language': language };
      const list = await agent.get('/console/resources/roles', headers);
      expect(list.text).to.contain(`<h1>${title}`.replace('>Roles', '><span lang="en" dir="ltr">Roles'));
      expect(list.text).to.contain(`>${doing}</a>`);
      const form = await agent.get('/console/create/roles', headers);
      expect(form.text).to.contain(`<label for="f-description">${label}</label>`);
      expect(form.text).to.contain('dir="ltr">description</code>').and.to.contain(help);
      expect(form.text).to.contain(`<title>${doing} `);
    });

  it('keep the declared text where there is no message', async () => {
    const form = await owner.agent.get('/console/change/branding', { 'accept-language': 'de' });
    expect(form.text).to.contain('<code>terms_url</code>');
  });

  it('require a recent login for changes that could grant access or send a secret away', async () => {
    const connection = (await server.store.collection('connections').list({ limit: 1 })).records[0];
    const stream = { name: 'Out', type: 'http', sink: JSON.stringify({ httpEndpoint: 'https://log.test/' }) };
    server.tick(11 * 60_000);
    for (const [path, form] of [
      [`/console/connections/${connection?.id}`, { display_name: 'Changed' }],
      ['/console/connections/new/oidc', { name: 'new' }],
      [`/console/change/connections/${connection?.id}`, { display_name: 'Changed' }],
      ['/console/create/log-streams', stream],
      ['/console/create/emails/provider', { name: 'smtp' }],
      ['/console/replace/branding/templates/universal-login', { template: '<html></html>' }],
      ['/console/create/users', { email: 'new@example.test', connection: 'users' }],
      // Places that are reachable by two routes are tested by both: the page template, a secret, an application's
      // APIs, the message of a link.
      ['/console/change/clients/gatehouse-all-applications', { custom_login_page: '<script></script>' }],
      ['/console/change/clients/web', { step: 'save', body: '{"client_secret":"chosen-elsewhere"}' }],
      ['/console/create/clients', { name: 'Out', app_type: 'spa' }],
      ['/console/new-application', { name: 'Out', callback: 'https://evil.test/', kind: 'spa' }],
      [
        '/console/create/resource-servers',
        { identifier: 'https://out.test/', signing_secret: 'chosen-elsewhere' },
      ],
      ['/console/applications/web/apis', { api: `${server.url}/api/v2/`, on: 'true' }],
      ['/console/applications/web/connections', { connection: connection?.id ?? '', on: 'true' }],
      [`/console/connections/${connection?.id}/applications`, { page: '0' }],
      [
        '/console/branding/messages/reset_email',
        { order: 'save', body: '<img src="https://evil.test/{{ url }}">' },
      ],
    ] as const) {
      const answer = await owner.post(path, form);
      expect(answer.location, `${path} ${answer.text}`).to.contain('/authorize');
    }
    expect(
      (await server.store.collection('connections').get(connection?.id ?? ''))?.display_name,
    ).to.not.equal('Changed');
    expect((await owner.get('/console/resources/log-streams')).text).to.not.contain('Out');
    const made = await owner.post('/console/create/roles', { name: 'Readers', description: '' });
    expect(made.location).to.contain('/console/resources/roles/');
  });

  it('are sorted by any member, even an object with members of any name', async () => {
    const list = '/console/resources/clients';
    for (const metadata of [{ toString: 'mine' }, { valueOf: 'mine' }])
      await server.store
        .collection('clients')
        .update('web', (client) => ({ ...client, client_metadata: metadata }));
    const page = await owner.get(`${list}?by=client_metadata`);
    expect(page.status).to.equal(200);
  });
});
