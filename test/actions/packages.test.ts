// npm packages of actions, from the folder that the operator fills.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, PASSWORD_REQUEST, payload, tenant, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { actionFailures, managed } from './support.ts';

const CLAIM = 'https://example.test/padded';
const TRIGGER = 'credentials-exchange';
const CODE = `const pad = require('padding');
exports.onExecuteCredentialsExchange = async (event, api) =>
  api.accessToken.setCustomClaim('${CLAIM}', pad('x', 3));`;

describe('npm packages of actions', () => {
  let dataDir: string;
  let server: TestServer | undefined;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-modules-'));
  });
  afterEach(async () => {
    await server?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const start = async (more: object = {}) => {
    server = await startManaged({ ...tenant, ...more }, dataDir);
    return server;
  };
  const install = async (text: string) => {
    const file = join(dataDir, 'modules', 'node_modules', 'padding', 'index.js');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(join(dirname(file), 'package.json'), '{ "name": "padding", "version": "1.0.0" }');
    await writeFile(file, text);
  };
  const ask = async (of: TestServer) => {
    const answer = await token(createAgent(of), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    return answer.status === 200 ? payload(answer.json().access_token)[CLAIM] : answer.status;
  };
  const PADDING = `module.exports = (text, length) => text.padStart(length, '-');`;

  it('are bundled at deployment, which warns of a missing or unfit one, without which the action fails', async () => {
    const of = await start();
    const made = await managed(of, 'POST', '/actions/actions', {
      name: 'Padding',
      code: CODE,
      dependencies: [{ name: 'padding', version: '1.0.0' }],
      supported_triggers: [{ id: TRIGGER }],
    });
    const path = `/actions/actions/${made.body.id}`;
    const bindings = [{ ref: { type: 'action_name', value: 'Padding' } }];
    const deploy = async () => {
      await managed(of, 'PATCH', path, { code: `${CODE}\n// ${++deployments}` });
      const deployed = await managed(of, 'POST', `${path}/deploy`);
      expect(deployed.status, JSON.stringify(deployed.body)).to.equal(200);
    };
    let deployments = 0;
    await deploy();
    expect(of.logged()).to.contain(
      'the action Padding fails when it runs: the package padding is not in modules/node_modules',
    );
    await managed(of, 'PATCH', `/actions/triggers/${TRIGGER}/bindings`, { bindings });
    expect(await ask(of)).to.equal(403);
    await install(`require('fs'); ${PADDING}`);
    await deploy();
    expect(of.logged()).to.match(/the action Padding fails when it runs: .*padding cannot be loaded.*'fs'/);
    expect(await ask(of)).to.equal(403);
    await install(PADDING);
    await deploy();
    expect(await ask(of)).to.equal('--x');
    const climbing = await managed(of, 'PATCH', path, { dependencies: [{ name: '../../../secret' }] });
    expect(climbing.status).to.equal(200);
    await deploy();
    expect(await ask(of)).to.equal(403);
  });

  it('are named in the log when they are missing at the start, and the action fails', async () => {
    const filed = {
      actions: [
        {
          name: 'Padding',
          code: CODE,
          deployed: true,
          dependencies: [{ name: 'padding', version: 'latest' }],
          supported_triggers: [{ id: TRIGGER }],
        },
      ],
      triggers: { [TRIGGER]: [{ action_name: 'Padding' }] },
    };
    const of = await start(filed);
    expect(await ask(of)).to.equal(403);
    expect((await actionFailures(of)).join()).to.contain('the package padding is not in');
    expect(of.logged()).to.contain('the action Padding cannot run: the package padding is not in');
    await of.stop();
    await install(PADDING);
    const again = await start(filed);
    expect(await ask(again)).to.equal('--x');
    expect(again.logged()).not.to.contain('cannot run');
  });

  it('can be required by rules, which list none', async () => {
    await install(PADDING);
    const script = (name: string) => `function (user, context, callback) {
      context.accessToken['${CLAIM}'] = require('${name}')('x', 3);
      callback(null, user, context);
    };`;
    const of = await start();
    const log = async () => {
      const answer = await token(createAgent(of), {
        ...PASSWORD_REQUEST,
        audience: API,
      });
      return answer.status === 200 ? payload(answer.json().access_token)[CLAIM] : answer.status;
    };
    const made = await managed(of, 'POST', '/rules', { name: 'Pads', script: script('padding@1.0.0') });
    expect(await log()).to.equal('--x');
    await managed(of, 'PATCH', `/rules/${made.body.id}`, { script: script('mysql') });
    expect(await log()).to.equal(403);
    expect((await actionFailures(of)).join()).to.contain("Cannot find module 'mysql'");
    await managed(of, 'PATCH', `/rules/${made.body.id}`, { script: script('../padding') });
    expect(await log()).to.equal(403);
  });
});
