// What strangers send must not fill the disk by the process's log.
import { expect } from 'chai';
import { samlClient, startSamlServer } from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

describe('the log of a server to which strangers send bad SAML messages', () => {
  let server: TestServer;
  before(async () => {
    server = await startSamlServer([samlClient('open')], UNLIMITED);
  });
  after(() => server.stop());

  it('has a short line without stacks for each, and no more than a hundred in a minute', async () => {
    const agent = createAgent(server);
    const quoted = 'q'.repeat(5_000);
    for (const [path, text] of [
      ['/logout', `<a b="${quoted}" ${quoted}`],
      ['/logout', `<a><${'x'.repeat(200)}/>&${quoted};</a>`],
      ['/samlp/open', Buffer.from(quoted, 'base64').toString('latin1')],
    ] as const) {
      for (let left = 50; left > 0; left--) {
        const form = { SAMLRequest: Buffer.from(text).toString('base64') };
        expect((await agent.request(path, { form })).status).to.equal(400);
      }
    }
    const lines = server
      .logged()
      .split('\n')
      .filter((line) => line.includes('request failed'));
    expect(lines).to.have.length.within(1, 100);
    for (const line of lines) {
      expect(line).not.to.include('stack');
      expect(line.length, line).to.be.below(700);
    }
  });
});

describe('the log of a server to which strangers send long texts', () => {
  let server: TestServer;
  before(async () => {
    server = await startSamlServer([samlClient('open')], UNLIMITED);
  });
  after(() => server.stop());

  it('has short lines, whatever the path and the headers', async () => {
    const agent = createAgent(server);
    const long = 'q'.repeat(6_000);
    for (const path of [
      `/${long}`,
      `/logout?${long}`,
      `/authorize?client_id=${long}`,
      `/samlp/${long}`,
      `/api/v2/${long}`,
    ]) {
      for (const name of [
        'user-agent',
        'x-request-id',
        'x-forwarded-for',
        'origin',
        'auth0-client',
        'authorization',
      ]) {
        const answer = await agent.request(path, { headers: { [name]: long } });
        expect(answer.status, `${path.slice(0, 20)} ${name}`).to.be.below(500);
      }
    }
    const lines = server.logged().split('\n');
    expect(lines.length).to.be.above(30);
    for (const line of lines) expect(line.length, line).to.be.below(3_000);
  });
});
