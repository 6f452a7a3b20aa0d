// Owners invite administrators, change their roles, and remove them.
import { expect } from 'chai';
import { removeMember } from '../../src/features/console/administrators/console-administrator-members.ts';
import { withdrawLink } from '../../src/features/console/administrators/links.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { addressOf, type ConsoleAgent, openConsole, PASSWORD, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const ROOT = '/console/administrators';
const NEW = { name: 'Grace <b>Hopper</b>', password: 'Console-Horse-2', repeat: 'Console-Horse-2' };

describe('administrators of the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole();
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const idOf = async (email: string) => {
    const [user] = await server.administrators.withEmail(email);
    return user?.id.split('|')[1] ?? 'nobody';
  };
  const membersOf = async () =>
    (await server.store.collection('administrators').get('administrators'))?.members ?? [];
  const linkIn = (text: string) => /\/console\/link\?ticket=[\w-]+/.exec(text)?.[0] ?? '';
  const invite = async (email: string, role: string) =>
    linkIn((await owner.post(ROOT, { email, role })).text);
  const accept = async (link: string, form: Record<string, string> = NEW) => {
    const agent = createAgent(server);
    const page = await agent.get(link);
    if (page.status !== 200) return { agent, answer: page };
    const { action, fields } = readForm(page, 'ticket');
    return { agent, answer: await agent.request(action, { form: { ...fields, ...form } }) };
  };
  const isLogged = (who: string, what: string) =>
    until(async () => {
      const where = { field: 'type', equals: 'administrator_changed' } as const;
      const { records } = await server.store.collection('logs').list({ where, limit: 100 });
      return records.some(({ description, user_name }) => user_name === who && description === what);
    });

  it('are invited by a link that works once, for its address and role', async () => {
    const link = await invite('grace@example.test', 'support');
    const { answer } = await accept(link, { ...NEW, email: 'mallory@example.test', role: 'owner' });
    expect(answer.status).to.equal(303);
    expect((await accept(link)).answer.status).to.equal(400);
    const members = await membersOf();
    const [grace] = await server.administrators.withEmail('grace@example.test');
    expect(members.find(({ user_id }) => user_id === grace?.id)?.role).to.equal('support');
    expect(await server.administrators.withEmail('mallory@example.test')).to.deep.equal([]);
    const page = await owner.get(ROOT);
    expect(page.text).to.contain('Grace &lt;b&gt;Hopper');
    expect(page.text).not.to.contain('<b>Hopper');
    await isLogged(addressOf('owner'), 'invited: grace@example.test');
    await isLogged('grace@example.test', 'became an administrator: grace@example.test');
  });

  it('are created once when a link is used concurrently', async () => {
    const link = await invite('grace@example.test', 'viewer');
    const answers = await Promise.all(Array.from({ length: 6 }, () => accept(link)));
    expect(answers.filter(({ answer }) => answer.status === 303)).to.have.length(1);
    expect(await membersOf()).to.have.length(5);
    expect(await server.administrators.withEmail('grace@example.test')).to.have.length(1);
  });

  it('cannot join by a link that was withdrawn, has expired, was replaced, or was made by a former owner', async () => {
    const withdrawn = await invite('a@example.test', 'owner');
    const [link] = (await server.store.collection('administrators').get('administrators'))?.links ?? [];
    await owner.post(`${ROOT}/links/${link?.id}/withdraw`);
    expect((await accept(withdrawn)).answer.status).to.equal(400);

    const replaced = await invite('b@example.test', 'owner');
    const other = await invite('b@example.test', 'viewer');
    expect((await accept(replaced)).answer.status).to.equal(400);
    expect((await accept(other, { ...NEW, repeat: 'x' })).answer.status).to.equal(400);

    const second = await invite('c@example.test', 'owner');
    expect((await accept(second)).answer.status).to.equal(303);
    const byFirst = await invite('d@example.test', 'owner');
    const owners = await membersOf();
    const first = owners.find(({ role }) => role === 'owner');
    const c = await idOf('c@example.test');
    expect(c).not.to.equal('nobody');
    expect(await removeMember(server, first?.user_id ?? '', `gatehouse|${c}`)).to.deep.equal({
      before: 'owner',
    });
    expect((await accept(byFirst)).answer.status).to.equal(400);
    server.tick(4 * 86_400_000);
    expect((await accept(other)).answer.status).to.equal(400);
  });

  it('withdraw a link once, so that the log has it once, and only as owners', async () => {
    await invite('twice@example.test', 'viewer');
    const { links = [] } = (await server.store.collection('administrators').get('administrators')) ?? {};
    const id = links.find(({ email }) => email === 'twice@example.test')?.id ?? '';
    const first = (await membersOf()).find(({ role }) => role === 'owner')?.user_id ?? '';
    const by = [
      (await membersOf()).find(({ role }) => role === 'viewer')?.user_id ?? '',
      first,
      first,
      first,
    ];
    const withdrawn = await Promise.all(by.map((one) => withdrawLink(server, id, one)));
    expect(withdrawn.map((link) => link?.email)).to.deep.equal([
      undefined,
      'twice@example.test',
      undefined,
      undefined,
    ]);
  });

  it('have a changed role with the next request', async () => {
    const editor = await openConsole(server, 'editor');
    expect((await editor.agent.get(ROOT)).status).to.equal(403);
    await owner.post(`${ROOT}/${await idOf(addressOf('editor'))}/role`, { role: 'owner' });
    expect((await editor.agent.get(ROOT)).status).to.equal(200);
    await owner.post(`${ROOT}/${await idOf(addressOf('editor'))}/role`, { role: 'viewer' });
    expect((await editor.agent.get(ROOT)).status).to.equal(403);
  });

  it('lose their session when they are removed', async () => {
    const editor = await openConsole(server, 'editor');
    await owner.post(`${ROOT}/${await idOf(addressOf('editor'))}/remove`);
    expect((await editor.agent.get('/console')).status).to.equal(303);
    expect(await server.administrators.withEmail(addressOf('editor'))).to.deep.equal([]);
  });

  it('can be invited again after a crash has interrupted their removal', async () => {
    await accept(await invite('grace@example.test', 'editor'));
    const [before] = await server.administrators.withEmail('grace@example.test');
    const [first] = await server.administrators.withEmail(addressOf('owner'));
    await accept(await invite('other@example.test', 'viewer'));
    await removeMember(server, before?.id ?? '', first?.id ?? '');
    expect(await server.administrators.withEmail('grace@example.test')).to.have.length(1);
    const link = await invite('grace@example.test', 'viewer');
    expect(link).to.not.equal('');
    expect((await accept(link)).answer.status).to.equal(303);
    const [after] = await server.administrators.withEmail('grace@example.test');
    expect(after?.id).to.not.equal(before?.id);
    expect((await membersOf()).find(({ user_id }) => user_id === after?.id)?.role).to.equal('viewer');
    // An administrator with a role is not affected.
    expect((await owner.post(ROOT, { email: 'other@example.test', role: 'viewer' })).status).to.equal(400);
    expect(await server.administrators.withEmail('other@example.test')).to.have.length(1);
  });

  it('always include an owner: the last one cannot be removed or demoted, even by concurrent requests', async () => {
    const id = await idOf(addressOf('owner'));
    expect((await owner.post(`${ROOT}/${id}/remove`)).status).to.equal(400);
    expect((await owner.post(`${ROOT}/${id}/role`, { role: 'editor' })).status).to.equal(400);
    await owner.post(`${ROOT}/${await idOf(addressOf('editor'))}/role`, { role: 'owner' });
    const editor = await openConsole(server, 'editor');
    const other = await idOf(addressOf('editor'));
    await Promise.all([owner.post(`${ROOT}/${other}/remove`), editor.post(`${ROOT}/${id}/remove`)]);
    expect((await membersOf()).filter(({ role }) => role === 'owner')).to.have.length(1);
  });

  it('lose their sessions on request, and their old password when they set a new one by a link', async () => {
    const editor = await openConsole(server, 'editor');
    const id = await idOf(addressOf('editor'));
    await owner.post(`${ROOT}/${id}/sessions`);
    expect((await editor.agent.get('/console')).status).to.equal(303);
    const again = await openConsole(server, 'editor');
    const link = linkIn((await owner.post(`${ROOT}/${id}/link`)).text);
    expect((await accept(link, { password: PASSWORD, repeat: PASSWORD })).answer.status).to.equal(400);
    expect((await accept(link, { password: 'weak', repeat: 'weak' })).answer.status).to.equal(400);
    const both = await Promise.all([accept(link), accept(link)]);
    expect(both.filter(({ answer }) => answer.status === 303)).to.have.length(1);
    expect((await again.agent.get('/console')).status).to.equal(303);
    const old = await openConsole(server, 'editor').then(
      () => 'in',
      () => 'out',
    );
    expect(old).to.equal('out');
  });

  it('set a new password themselves after a recent login', async () => {
    const viewer = await openConsole(server, 'viewer');
    const form = { password: NEW.password, repeat: NEW.repeat };
    const link = linkIn((await owner.post(`${ROOT}/${await idOf(addressOf('viewer'))}/link`)).text);
    expect(link).to.contain('ticket=');
    server.tick(11 * 60_000);
    expect((await viewer.post('/console/password', form)).location).to.contain('/authorize');
    const fresh = await openConsole(server, 'viewer');
    expect((await fresh.post('/console/password', form)).location).to.contain('/console');
    expect((await accept(link)).answer.status, 'an earlier link').to.equal(400);
    expect((await viewer.agent.get('/console')).status).to.equal(303);
  });

  it('can only be changed after a recent login', async () => {
    server.tick(11 * 60_000);
    const answer = await owner.post(ROOT, { email: 'grace@example.test', role: 'owner' });
    expect(answer.status).to.equal(303);
    expect(answer.location).to.contain('prompt=login');
    expect(
      (await server.store.collection('administrators').get('administrators'))?.links ?? [],
    ).to.deep.equal([]);
  });

  it('are rejected for an invalid address, an address in use, or an unknown role', async () => {
    for (const email of ['', 'x', addressOf('viewer'), addressOf('viewer').toUpperCase()])
      expect((await owner.post(ROOT, { email, role: 'owner' })).status, email).to.equal(400);
    for (const role of ['', 'root', '__proto__'])
      expect((await owner.post(ROOT, { email: 'a@example.test', role })).status, role).to.equal(400);
    for (const id of ['nobody', '..%2f', 'links'])
      expect((await owner.post(`${ROOT}/${id}/remove`)).status, id).to.equal(404);
  });
});
