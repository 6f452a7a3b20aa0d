// The pages of actions in the console.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { logIn, payload, pkce, spaRequest, spaTokens, tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { PATIENCE } from '../support/wait-until.ts';

const ACTIONS = '/console/actions';
const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>'`;
const PLAN = 'https://example.com/plan';

/** Returns the code of an action that sets a claim. */
const claim = (value: string) =>
  `exports.onExecutePostLogin = async (event, api) => {\n  api.idToken.setCustomClaim('${PLAN}', ${value});\n};\n`;

describe('actions in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: UNLIMITED.attackProtection.rateLimits } },
    });
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const make = async (name: string, trigger = 'post-login') => {
    const made = await owner.post(`${ACTIONS}/new`, { name, trigger });
    expect(made.status, made.text).to.equal(303);
    const path = new URL(made.location).pathname;
    return { path, id: path.slice(`${ACTIONS}/`.length) };
  };
  const hidden = async (path: string, name: string) =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec((await owner.get(path)).text)?.[1] ?? '';
  const saveDraft = async (path: string, code: string, more: Record<string, string> = {}) =>
    owner.post(`${path}/draft`, { stamp: await hidden(path, 'stamp'), code, dependencies: '', ...more });
  /** Returns the order of a trigger's actions, and the stamp of its form. */
  const order = async () => {
    const { text } = await owner.get(ACTIONS);
    const card = text.slice(text.indexOf('id="post-login"'), text.indexOf('id="credentials-exchange"'));
    const stamp = /name="stamp" value="([^"]*)"/.exec(card)?.[1] ?? '';
    const bound = card.split('Not bound')[0]?.match(/<bdi>[^<]*/g) ?? [];
    return { stamp, names: bound.map((one) => one.slice('<bdi>'.length)) };
  };
  const change = async (action: string, wanted: string) => {
    const form = { trigger: 'post-login', action, change: wanted, stamp: (await order()).stamp };
    return owner.post(`${ACTIONS}/order`, form);
  };
  const claimed = async () => payload((await spaTokens(createAgent(server), server)).id_token)[PLAN];

  it('start from a template of their trigger, and run once deployed and bound, in the chosen order', async () => {
    const [first, second] = [await make('First'), await make('Second')];
    expect((await owner.get(first.path)).text).to.contain('exports.onExecutePostLogin');
    await saveDraft(first.path, claim(`'first'`));
    await saveDraft(second.path, claim(`'second'`));
    const deploy = ({ path }: { path: string }) => owner.post(`${path}/deploy`);
    expect((await deploy(second)).location).to.contain('said=console.actions.said.deployed');
    // A draft cannot be bound.
    expect((await change(first.id, 'bind')).status).to.equal(400);
    await deploy(first);
    for (const { id } of [first, second]) expect((await change(id, 'bind')).status).to.equal(303);
    expect((await order()).names).to.deep.equal(['First', 'Second']);
    expect(await claimed()).to.equal('second');
    await change(second.id, 'up');
    expect((await order()).names).to.deep.equal(['Second', 'First']);
    expect(await claimed()).to.equal('first');
    await change(second.id, 'continue');
    expect((await owner.get(ACTIONS)).text).to.contain('May fail');
    await change(first.id, 'unbind');
    expect((await order()).names).to.deep.equal(['Second']);
    expect(await claimed()).to.equal('second');
  });

  it('keep an order that somebody else has changed meanwhile', async () => {
    const { path, id } = await make('First');
    await owner.post(`${path}/deploy`);
    const { stamp } = await order();
    await change(id, 'bind');
    const form = { trigger: 'post-login', action: id, change: 'unbind', stamp };
    const late = await owner.post(`${ACTIONS}/order`, form);
    expect(late.status).to.equal(409);
    expect((await order()).names).to.deep.equal(['First']);
    for (const wrong of [{ trigger: 'nowhere' }, { change: 'explode' }])
      expect((await owner.post(`${ACTIONS}/order`, { ...form, ...wrong })).status).to.equal(400);
  });

  it('save a draft without running it, unless somebody else has saved one meanwhile', async () => {
    const { path } = await make('Draft');
    const stamp = await hidden(path, 'stamp');
    const code =
      '\nexports.onExecutePostLogin = async () => {};\r\n// </textarea><script>alert(1)</script>\r\n';
    const saved = await saveDraft(path, code, { dependencies: 'lodash@4.17.21\r\n@scope/one' });
    expect(saved.location).to.contain('said=console.actions.said.saved');
    const page = await owner.get(path);
    expect(page.text).to.not.contain('<script>alert(1)');
    expect(page.text).to.contain('lodash@4.17.21\n@scope/one');
    const [action] = await server.store.collection('documents').findBy('kind', 'action');
    expect(action?.body.code).to.equal(code.replaceAll('\r\n', '\n'));
    const late = await owner.post(`${path}/draft`, { stamp, code: '// mine', dependencies: '' });
    expect(late.status).to.equal(409);
    expect(late.text).to.contain('// mine').and.to.contain('saved this draft in the meantime');
    const long = await saveDraft(path, '\u20ac'.repeat(100_001));
    expect(long.status).to.equal(400);
    expect(long.text).to.match(/id="code"[^>]*aria-invalid="true"/);
    expect((await saveDraft(path, '\u20ac'.repeat(99_999))).status).to.equal(303);
  });

  it('store secrets without showing them, and keep those that are not entered again', async () => {
    const { path } = await make('Secrets');
    await owner.post(`${path}/secrets`, { name: 'ONE', value: 'value-of-one' });
    await owner.post(`${path}/secrets`, {
      name: 'TWO',
      value: 'value-of-two',
      updated_at: HOSTILE,
      all_changes_deployed: 'true',
    });
    expect((await owner.get(path)).text).to.not.contain('onerror=alert(1)');
    await saveDraft(
      path,
      'exports.onExecutePostLogin = async ({ secrets }, api) => {\n  api.idToken.setCustomClaim("https://e.test/length", secrets.ONE.length + secrets.TWO.length);\n  console.log(secrets.ONE);\n};',
    );
    const ran = await owner.post(`${path}/test`, { event: '{}' });
    expect(ran.text).to.contain('setCustomClaim(&#34;https://e.test/length&#34;, 24)');
    for (const tab of ['', '/deploy', '/versions', '/test', '/runs'])
      expect((await owner.get(path + tab)).text, tab).to.not.contain('value-of-');
    await owner.post(`${path}/secrets/remove`, { name: 'ONE' });
    const page = await owner.get(path);
    expect(page.text).to.contain('event.secrets.TWO').and.to.not.contain('event.secrets.ONE');
    expect((await owner.post(`${path}/secrets`, { name: '  ', value: 'x' })).status).to.equal(400);
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    expect(JSON.stringify(records)).to.not.contain('value-of-');
  });

  it('run with a test event, and show commands, output, usage and errors', async () => {
    const { path } = await make('Tried');
    await saveDraft(
      path,
      `exports.onExecutePostLogin = async (event) => {\n  console.log(event.user.name);\n  throw new Error(event.user.name);\n};`,
    );
    const ran = await owner.post(`${path}/test`, { event: JSON.stringify({ user: { name: HOSTILE } }) });
    expect(ran.status).to.equal(200);
    expect(ran.text).to.match(/<section[^>]*aria-labelledby="tried-heading"[^>]* tabindex="-1" autofocus>/);
    expect(ran.text).to.contain('It failed').and.to.contain('&lt;img src=x').and.to.not.contain('<img src=x');
    for (const event of ['{', '[]', 'null', '{"__proto__":1}']) {
      const wrong = await owner.post(`${path}/test`, { event });
      expect(wrong.status, event).to.equal(400);
      expect(wrong.text).to.match(/id="event"[^>]*aria-invalid="true"/);
    }
  });

  it('mark the claims that no token would contain', async () => {
    const { path } = await make('Claims');
    await saveDraft(
      path,
      `exports.onExecutePostLogin = async (event, api) => {\n  api.idToken.setCustomClaim('sub', 'x');\n  api.idToken.setCustomClaim('https://example.test/plan', 'gold');\n};`,
    );
    const { text } = await owner.post(`${path}/test`, { event: '{}' });
    const asked = [
      ...text.matchAll(/<code>api\.idToken\.setCustomClaim\((.*?)\)<\/code>( <span class="tag bad">)?/g),
    ];
    expect(asked.map(([, args = '', mark]) => [args.includes('sub'), mark !== undefined])).to.deep.equal([
      [true, true],
      [false, false],
    ]);
  });

  it('show what a deployment changes, keep each version, and can return to one', async () => {
    const { path, id } = await make('Versions');
    await saveDraft(path, claim(`'one'`));
    await owner.post(`${path}/deploy`);
    await change(id, 'bind');
    await saveDraft(path, claim(`'two'`));
    const deploy = await owner.get(`${path}/deploy`);
    expect(deploy.text).to.contain('class="removed"').and.to.contain('class="added"');
    expect(deploy.text).to.contain('is bound to post-login');
    await owner.post(`${path}/deploy`);
    expect(await claimed()).to.equal('two');
    const versions = await owner.get(`${path}/versions`);
    const first = [...versions.text.matchAll(/versions\?version=([\w-]+)/g)].at(-1)?.[1] ?? '';
    expect((await owner.get(`${path}/versions?version=${first}`)).text).to.contain('Deploy version 1 again');
    expect((await owner.post(`${path}/versions`, { version: first, draft: 'yes' })).status).to.equal(303);
    expect(await claimed()).to.equal('one');
    expect((await owner.get(`${path}/deploy`)).text).to.contain(
      'The draft is the same as the deployed version',
    );
    expect((await owner.post(`${path}/versions`, { version: 'nothing' })).status).to.equal(404);
  });

  it('list their runs in logins, with errors', async () => {
    const { path, id } = await make('Failing');
    await saveDraft(
      path,
      'exports.onExecutePostLogin = async () => { throw new Error("out of order <b>"); };',
    );
    await owner.post(`${path}/deploy`);
    await change(id, 'bind');
    await logIn(createAgent(server), server, spaRequest(pkce().challenge));
    const until = Date.now() + PATIENCE;
    let page = await owner.get(`${path}/runs`);
    // Runs are stored in the background.
    while (!page.text.includes('out of order') && Date.now() < until) page = await owner.get(`${path}/runs`);
    expect(page.text).to.contain('Failed').and.to.contain('out of order &lt;b&gt;');
  });

  it('are deleted after a warning; a bound one only when the box is ticked', async () => {
    const { path, id } = await make('Guard');
    await owner.post(`${path}/deploy`);
    await change(id, 'bind');
    expect((await owner.get(`${path}/delete`)).text).to.contain('everything that it denies is allowed');
    expect((await owner.post(`${path}/delete`)).status).to.equal(409);
    expect((await owner.post(`${path}/delete`, { unbind: 'yes' })).status).to.equal(303);
    expect((await owner.get(path)).status).to.equal(404);
    expect((await order()).names).to.deep.equal([]);
  });

  it('are not created without a name, with a taken name, or for an unknown trigger', async () => {
    await make(HOSTILE);
    const list = await owner.get(ACTIONS);
    expect(list.text)
      .to.contain('&lt;img src=x')
      .and.to.not.contain('<img src=x')
      .and.to.not.contain('<script>alert');
    for (const form of [
      { name: '' },
      { name: HOSTILE },
      { name: 'x'.repeat(256) },
      { name: 'New', trigger: 'nowhere' },
    ]) {
      const refused = await owner.post(`${ACTIONS}/new`, { trigger: 'post-login', ...form });
      expect(refused.status, JSON.stringify(form)).to.be.within(400, 409);
      expect(refused.text).to.contain('aria-invalid="true"').and.to.not.contain('<img src=x');
    }
  });

  it('show a viewer no code, and support nothing', async () => {
    const { path, id } = await make('Seen');
    const viewer = await openConsole(server, 'viewer');
    const support = await openConsole(server, 'support');
    const forms = ['draft', 'secrets', 'secrets/remove', 'deploy', 'versions', 'test', 'delete'];
    for (const tab of ['', '/deploy', '/versions', '/runs']) {
      const seen = await viewer.get(path + tab);
      expect(seen.status, tab).to.equal(200);
      expect(seen.text, tab).to.not.contain('onExecutePostLogin');
      expect((await support.get(path + tab)).status, tab).to.equal(403);
    }
    for (const one of [viewer, support]) {
      for (const form of forms) expect((await one.post(`${path}/${form}`)).status, form).to.equal(403);
      expect((await one.post(`${ACTIONS}/new`, { name: 'X', trigger: 'post-login' })).status).to.equal(403);
      const bind = { trigger: 'post-login', action: id, change: 'bind', stamp: '' };
      expect((await one.post(`${ACTIONS}/order`, bind)).status).to.equal(403);
      expect((await one.get(`${path}/test`)).status).to.equal(403);
    }
    expect((await viewer.get(ACTIONS)).text)
      .to.contain('Seen')
      .and.to.not.contain(`${ACTIONS}/order`);
  });

  it('reject forms of other pages, and require a recent login for all that affects logins', async () => {
    const { path, id } = await make('Own');
    for (const form of ['draft', 'secrets', 'deploy', 'versions', 'test', 'delete']) {
      const foreign = await owner.agent.request(`${path}/${form}`, { form: { code: 'x', _csrf: 'guessed' } });
      expect(foreign.status, form).to.equal(403);
    }
    server.tick(11 * 60_000);
    for (const form of ['secrets', 'deploy', 'versions', 'test', 'delete'])
      expect((await owner.post(`${path}/${form}`, { event: '{}' })).location, form).to.contain('/authorize?');
    expect((await change(id, 'bind')).location).to.contain('/authorize?');
  });
});
