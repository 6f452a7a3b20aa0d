// The address of a client as the edge of a custom domain reports it, in the header that the domain names, with the
// domain's key.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const KEY = 'the-api-key-of-the-edge-of-login';
const OTHER_KEY = 'the-api-key-of-the-edge-of-others';
const CLIENT = '203.0.113.7';

for (const { mode, env, plain } of [
  {
    mode: 'behind a proxy',
    env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://localhost' },
    plain: '198.51.100.9',
  },
  { mode: 'without one', env: {} as Record<string, string>, plain: '127.0.0.1' },
])
  describe(`the client's address from an edge, ${mode}`, () => {
    let server: TestServer;
    const isProxied = env.TLS === 'proxy';
    before(async () => {
      const domains = [
        { domain: 'login.example.test', api_key: KEY, custom_client_ip_header: 'CF-Connecting-IP' },
        { domain: 'other.example.test', api_key: OTHER_KEY },
        { domain: 'hops.example.test', api_key: `${KEY}-hops`, custom_client_ip_header: 'x-forwarded-for' },
      ];
      server = await startManaged({ ...tenant, customDomains: domains }, undefined, env);
    });
    after(() => server.stop());

    const address = () => (isProxied ? { url: `http://127.0.0.1:${server.settings.port}`, ca: '' } : server);

    let asked = 0;
    /** Returns the address that the log has of a failed login. */
    const seen = async (headers: Record<string, string>, isRefused = false) => {
      const email = `nobody-${++asked}@example.test`;
      const answer = await createAgent(address()).request('/oauth/token', {
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.9', ...headers },
        json: {
          grant_type: 'password',
          client_id: 'web',
          client_secret: 'web-secret',
          username: email,
          password: 'x',
        },
      });
      expect(answer.status, answer.text).to.equal(isRefused ? 400 : 403);
      if (isRefused) return answer.json().error;
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      return records.find(({ user_name: name }) => name === email)?.ip;
    };

    it(`comes over a connection ${isProxied ? 'that stays open longer than those of proxies' : 'that stays open for five seconds without a request'}`, async () => {
      const { headers } = await createAgent(address()).get('/testz', { 'x-forwarded-proto': 'https' });
      expect(headers['keep-alive']).to.equal(`timeout=${isProxied ? 620 : 5}`);
    });

    it("is that of the domain's header, with the domain's key", async () => {
      expect(await seen({ 'cname-api-key': KEY, 'cf-connecting-ip': CLIENT })).to.equal(CLIENT);
      expect(await seen({ 'cname-api-key': KEY, 'CF-Connecting-IP': '2001:db8::7' })).to.equal('2001:db8::7');
      for (const withPort of [`${CLIENT}:51008`, '[2001:db8::8]:443'])
        expect(await seen({ 'cname-api-key': KEY, 'cf-connecting-ip': withPort })).to.equal(
          withPort.includes('[') ? '2001:db8::8' : CLIENT,
        );
    });

    it("is not accepted without the key, with another domain's, or in another header", async () => {
      for (const headers of [
        { 'cf-connecting-ip': CLIENT },
        { 'cname-api-key': 'a-key-of-nobody-whatever-it-is', 'cf-connecting-ip': CLIENT },
        { 'cname-api-key': OTHER_KEY, 'cf-connecting-ip': CLIENT },
        { 'cname-api-key': KEY, 'true-client-ip': CLIENT },
        { 'cname-api-key': KEY, 'cf-connecting-ip': 'unknown' },
        { 'cname-api-key': KEY, 'cf-connecting-ip': `${CLIENT}, 192.0.2.1` },
        { 'cname-api-key': KEY },
      ] as Record<string, string>[])
        expect(await seen(headers), JSON.stringify(headers)).to.equal(plain);
    });

    it("is refused when the edge has passed on its client's header", async () => {
      const headers = { 'cname-api-key': KEY, 'cf-connecting-ip': CLIENT, cf_connecting_ip: '192.0.2.1' };
      expect(await seen(headers, true)).to.equal('invalid_request');
    });

    it('is the last hop that the edge reports, where none of our proxies adds to them', async () => {
      const headers = { 'cname-api-key': `${KEY}-hops`, 'x-forwarded-for': `192.0.2.1, ${CLIENT}` };
      expect(await seen(headers)).to.equal(CLIENT);
    });

    if (!isProxied)
      it("changes with the domain's settings", async () => {
        const { body } = await managed(server, 'GET', '/custom-domains');
        const { custom_domain_id: id } = body.find(
          ({ domain }: { domain: string }) => domain === 'other.example.test',
        );
        const name = (custom_client_ip_header: string | null) =>
          managed(server, 'PATCH', `/custom-domains/${id}`, { custom_client_ip_header });
        expect((await name('true-client-ip')).status).to.equal(200);
        const headers = { 'cname-api-key': OTHER_KEY, 'true-client-ip': CLIENT };
        expect(await seen(headers)).to.equal(CLIENT);
        await name(null);
        expect(await seen(headers)).to.equal(plain);
      });
  });
