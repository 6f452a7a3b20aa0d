// Actions of post-login with every way to log in: SAML, a device, an approval, a code that was sent. Each can deny the
// login, and its claims are in what the application gets.
import { expect } from 'chai';
import { OTP_GRANT, tenant as passwordless } from '../connections/passwordless/tenant.ts';
import { devicesOf } from '../factors/device.ts';
import { callsOf as mfaCallsOf } from '../factors/tenant.ts';
import { CIBA_GRANT, callsOf, cibaTenant, deviceTenant, told } from '../grants/tenant.ts';
import { startManaged } from '../management/support.ts';
import { samlClient, serviceProvider, signOn, startSamlServer } from '../saml/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, payload, responseOf, submitLogin, token, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { actionsAt } from '../support/tenant.ts';
import { bindActions, eventsOf, postLogin, printed } from './support.ts';

const NS = 'https://example.test/';
const CLAIMS =
  postLogin(`console.log(event.client.client_id + ' by ' + event.transaction.protocol + ' at ' + event.connection.name);
  api.idToken.setCustomClaim('${NS}by', event.transaction.protocol);
  api.accessToken.setCustomClaim('${NS}by', event.transaction.protocol);
  api.user.setAppMetadata('seen', true);`);
const DENY = postLogin(`api.access.deny('Not from ' + event.client.client_id + '.');`);

describe('actions of post-login', () => {
  let server: TestServer;
  afterEach(() => server.stop());
  const bind = (code: string) => bindActions(server, 'post-login', { code });

  describe('for a SAML service provider', () => {
    const start = async (code: string) => {
      server = await startSamlServer([samlClient('sp')], actionsAt('post-login', { one: code }));
    };

    it('run before there is an assertion', async () => {
      await start(CLAIMS);
      const { profile } = await signOn(createAgent(server), server, await serviceProvider(server, 'sp'));
      expect(profile.nameID).to.be.a('string');
      expect(await printed(server)).to.contain('sp by samlp at users');
    });

    it('deny it', async () => {
      await start(DENY);
      const agent = createAgent(server);
      const sp = await serviceProvider(server, 'sp');
      const login = await follow(
        agent,
        await agent.get(await sp.getAuthorizeUrlAsync('', undefined, {})),
        server.url,
      );
      const page = await submitLogin(agent, server, login);
      const xml = Buffer.from(
        /name="SAMLResponse" value="([^"]*)"/.exec(page.text)?.[1] ?? '',
        'base64',
      ).toString();
      expect(page.text + xml).to.contain('Not from sp.');
      expect(xml).not.to.contain('Assertion ');
      expect((await eventsOf(server, 'f')).length).to.be.above(0);
    });
  });

  describe('for a device', () => {
    const { begin, poll, connect } = callsOf(() => server);
    beforeEach(async () => {
      server = await startManaged(deviceTenant);
    });

    it('run where its user logs in, and their claims are in its tokens', async () => {
      await bind(CLAIMS);
      const codes = (await begin()).json();
      await connect(codes);
      server.tick(5_000);
      const tokens = (await poll(codes.device_code)).json();
      expect(payload(tokens.id_token)).to.have.property(`${NS}by`, 'oauth2-device-code');
      expect(await printed(server)).to.contain('tv by ');
    });

    it('deny it, and the device gets nothing', async () => {
      await bind(DENY);
      const codes = (await begin()).json();
      const page = await connect(codes);
      expect(page.text).not.to.contain('Your device is connected');
      server.tick(5_000);
      const answer = await poll(codes.device_code);
      expect(answer.status).not.to.equal(200);
      expect(answer.text).not.to.contain('access_token');
    });

    it('deny it between the login and the tokens', async () => {
      const codes = (await begin()).json();
      await connect(codes);
      await bind(DENY);
      server.tick(5_000);
      expect(told(await poll(codes.device_code))).to.deep.equal([403, 'access_denied', 'Not from tv.']);
    });
  });

  describe('for a login that is approved on another device', () => {
    let calls: ReturnType<typeof mfaCallsOf>;
    let people = 0;
    const devices = devicesOf(() => ({ server, calls, someone: () => `mfa-${people++}@example.test` }));
    const approved = async () => {
      const { user, device } = await devices.enrolled();
      const sub = (await server.users.withEmail(user))[0]?.id ?? '';
      const asked = await createAgent(server).request('/bc-authorize', {
        form: {
          client_id: 'bank',
          client_secret: 'bank-secret',
          scope: 'openid profile',
          binding_message: 'Payment 4711',
          login_hint: JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub }),
        },
      });
      await devices.answerWith(device, (await devices.waiting(device))[0]?.id ?? '', 'allow');
      return token(createAgent(server), {
        grant_type: CIBA_GRANT,
        client_id: 'bank',
        client_secret: 'bank-secret',
        auth_req_id: asked.json().auth_req_id,
      });
    };
    beforeEach(async () => {
      server = await startManaged(cibaTenant);
      calls = mfaCallsOf(server);
      people = 0;
    });

    it('run before there are tokens', async () => {
      await bind(CLAIMS);
      const tokens = (await approved()).json();
      expect(payload(tokens.id_token)).to.include({ [`${NS}by`]: 'oidc-ciba' });
      expect(await printed(server)).to.contain('bank by oidc-ciba');
    });

    it('deny it', async () => {
      await bind(postLogin(`if (event.client.client_id === 'bank') api.access.deny('Not from bank.');`));
      expect(told(await approved())).to.deep.equal([403, 'access_denied', 'Not from bank.']);
    });
  });

  describe('for a code that was sent', () => {
    beforeEach(async () => {
      server = await startManaged(passwordless);
    });
    const email = 'reader@example.test';
    const start = async () => {
      const json = {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email,
        send: 'code',
      };
      await createAgent(server).request('/passwordless/start', { json });
      return (await nextMessageTo(server, email, 1, 'code')).code ?? '';
    };
    const use = async (otp: string) =>
      token(createAgent(server), {
        grant_type: OTP_GRANT,
        client_id: 'web',
        client_secret: 'web-secret',
        realm: 'email',
        username: email,
        otp,
        scope: 'openid email',
      });

    it('run at the token endpoint, with the metadata of a new user', async () => {
      await bind(CLAIMS);
      const tokens = (await use(await start())).json();
      expect(payload(tokens.id_token)).to.include({ [`${NS}by`]: 'oauth2-passwordless', email });
      const user = await server.users.get(payload(tokens.id_token).sub);
      expect(user?.app_metadata).to.deep.equal({ seen: true });
    });

    it('deny it at the token endpoint', async () => {
      await bind(DENY);
      expect(told(await use(await start()))).to.deep.equal([403, 'access_denied', 'Not from web.']);
    });

    it('deny it at the page', async () => {
      await bind(DENY);
      const agent = createAgent(server);
      const page = await follow(
        agent,
        await authorize(agent, webRequest({ connection: 'email' })),
        server.url,
      );
      const address = readForm(page, 'address');
      const asked = await agent.request(address.action, { form: { ...address.fields, address: email } });
      const form = readForm(asked, 'code');
      const { code = '' } = await nextMessageTo(server, email, 1, 'code');
      const back = await follow(
        agent,
        await agent.request(form.action, { form: { ...form.fields, code } }),
        server.url,
      );
      expect(responseOf(back)).to.include({ error: 'access_denied', error_description: 'Not from web.' });
      expect(responseOf(back)).not.to.have.property('code');
    });
  });
});
