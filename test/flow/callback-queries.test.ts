// The query of a callback is kept to the letter: an application may have signed it.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { withParameters } from '../../src/http/server/body.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, logIn, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const QUERY = 'sig=a%7Eb~c%2bd&flag&empty=&sp=a%20b+c&state=theirs';
const CALLBACK = `${WEB_CALLBACK}?${QUERY}`;

describe('the query of a callback', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: tenantWith({ change: { web: { callbacks: [WEB_CALLBACK, CALLBACK] } } }),
    });
  });
  after(() => server.stop());
  const KEPT = `${WEB_CALLBACK}?sig=a%7Eb~c%2bd&flag&empty=&sp=a%20b+c&`;

  it('keeps its spelling in a response, and in an error', async () => {
    const agent = createAgent(server);
    const request = { ...webRequest(), redirect_uri: CALLBACK, state: 'ours' };
    const answer = await logIn(agent, server, request);
    expect(answer.location.startsWith(KEPT), answer.location).to.equal(true);
    expect(answer.location)
      .to.match(/[?&]code=/)
      .and.match(/[?&]state=ours(&|$)/)
      .and.not.contain('theirs');
    const refused = await authorize(createAgent(server), { ...request, prompt: 'none' });
    expect(refused.location.startsWith(`${KEPT}error=`), refused.location).to.equal(true);
  });

  it('keeps it beside a signed response', async () => {
    const agent = createAgent(server);
    const request = { ...webRequest(), redirect_uri: CALLBACK, state: 'ours', response_mode: 'jwt' };
    const { location } = await logIn(agent, server, request);
    expect(location.startsWith(`${WEB_CALLBACK}?${QUERY}&response=`), location).to.equal(true);
    expect(decodeJwt(new URL(location).searchParams.get('response') ?? '')).to.include({ state: 'ours' });
  });

  for (const [address, expected] of [
    ['https://a.test/cb', 'https://a.test/cb?x=1+2'],
    ['https://a.test/cb?', 'https://a.test/cb?x=1+2'],
    ['https://a.test/cb?&a&&b=', 'https://a.test/cb?&a&&b=&x=1+2'],
    ['https://a.test/cb?x=old&y=%7E&%78=too#f', 'https://a.test/cb?y=%7E&x=1+2#f'],
    ['com.example.app:/cb?y=%7e', 'com.example.app:/cb?y=%7e&x=1+2'],
  ] as const)
    it(`is changed by the added parameters alone: ${address}`, () => {
      expect(withParameters(address, { x: '1 2' })).to.equal(expected);
    });
});
