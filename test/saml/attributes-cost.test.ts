// What users wrote into their own metadata becomes attributes of assertions: how many, and what signing them costs.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { isSignedBy } from './conformance.ts';
import { authnRequest, redirectQuery } from './messages.ts';
import { certificateOf, logInAt, posted, samlClient, startSamlServer } from './support.ts';

const ODD = `<a b='"'>&amp; \t\r\n ]]> é 💥`;
const user = (name: string, team: readonly string[]) => ({
  ...USER,
  email: `${name}@example.test`,
  username: name,
  connection: 'users',
  email_verified: true,
  user_metadata: { team },
});
const MANY = user(
  'many',
  Array.from({ length: 1_950 }, (_, at) => `${ODD} ${at}`.slice(0, 90)),
);
const EXCESSIVE = user('excessive', Array(60_000).fill('x'));
const LONG = user('long', ['x'.repeat(250_000)]);

describe('attributes of an assertion that users write themselves', () => {
  let server: TestServer;
  before(async () => {
    const mapped = { mappings: { 'user_metadata.team': 'team' } };
    server = await startSamlServer(
      [samlClient('mapped', { ...mapped, signResponse: true, signAssertion: true })],
      { users: [MANY, EXCESSIVE, LONG] },
    );
  });
  after(() => server.stop());

  const address = () => `/samlp/mapped?${redirectQuery(authnRequest())}`;
  const logIn = async (agent: Agent, who: typeof MANY) =>
    posted(
      await submitLogin(agent, server, await follow(agent, await agent.get(address()), server.url), who),
    );

  it('are signed, two thousand of them, with whatever is in them', async () => {
    const { xml } = await logIn(createAgent(server), MANY);
    const certificate = await certificateOf(server);
    expect(xml.match(/<saml:AttributeValue/g)?.length).to.be.above(1_950);
    expect(await isSignedBy(xml, 'Response', certificate)).to.equal(true);
    expect(await isSignedBy(xml, 'Assertion', certificate)).to.equal(true);
  });

  for (const [what, who] of [
    ['many', EXCESSIVE],
    ['long', LONG],
  ] as const) {
    it(`that are too ${what} end in a refusal, which takes the thread that answers no time`, async () => {
      const agent = createAgent(server);
      const { xml } = await logIn(agent, who);
      expect(xml).to.contain('too many attributes').and.not.contain('saml:Assertion');
      let least = Number.POSITIVE_INFINITY;
      for (let left = 4; left > 0 && least >= 100; left--) {
        const before = process.threadCpuUsage();
        await logInAt(agent, server, address());
        const { user: own, system } = process.threadCpuUsage(before);
        least = Math.min(least, (own + system) / 1000);
      }
      expect(least).to.be.below(100);
    });
  }
});
