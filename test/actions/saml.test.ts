// What actions of post-login set in a SAML response.
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import {
  ACS,
  certificateOf,
  makeCertificate,
  SP_ISSUER,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { keptBy } from '../support/store.ts';
import { actionsAt } from '../support/tenant.ts';
import { postLogin } from './support.ts';

const BY_ID = {
  mappings: { user_id: 'id', email: 'mail' },
  nameIdentifierProbes: ['id'],
  nameIdentifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
};

describe('rules and SAML', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const attributes = async (verified: boolean) => {
    const script = `function (user, context, callback) {
      user.location = 'here'; user.contact = 'ceo@example.test';
      context.samlConfiguration.mappings['https://example.test/location'] = 'location';
      context.samlConfiguration.mappings['https://example.test/mail'] = 'email';
      context.samlConfiguration.mappings['https://example.test/contact'] = 'contact';
      context.samlConfiguration.mappings['https://example.test/team'] = 'user_metadata.team';
      context.samlConfiguration.mappings['https://example.test/nothing'] = 'constructor.name';
      context.samlConfiguration.lifetimeInSeconds = 120;
      callback(null, user, context);
    }`;
    server = await startSamlServer([samlClient('plain', BY_ID)], {
      users: [{ ...USER, email_verified: verified, user_metadata: { team: 'blue' } }],
      rules: [{ name: 'SAML', script }],
    });
    const sp = await serviceProvider(server, 'plain', {
      issuer: SP_ISSUER,
      identifierFormat: BY_ID.nameIdentifierFormat,
    });
    const { profile } = await signOn(createAgent(server), server, sp);
    return profile.attributes as Record<string, unknown>;
  };

  it('set attributes from the fields that they map, except unverified values that read as addresses', async () => {
    const told = await attributes(true);
    expect(told).to.include({
      'https://example.test/location': 'here',
      'https://example.test/mail': USER.email,
      'https://example.test/team': 'blue',
    });
    expect(told).to.not.have.any.keys('https://example.test/contact', 'https://example.test/nothing');
    await server.stop();
    const unproved = await attributes(false);
    expect(unproved).to.include({ 'https://example.test/location': 'here' });
    expect(JSON.stringify(unproved)).not.to.contain('@');
  });
});

describe('actions of post-login and SAML', () => {
  let server: TestServer;
  const start = async (body: string, clients: object[] = []) => {
    server = await startSamlServer([samlClient('plain', BY_ID), ...(clients as { client_id: string }[])], {
      users: [{ ...USER, email_verified: true }],
      ...actionsAt('post-login', { SAML: postLogin(body) }),
    });
  };
  afterEach(() => server.stop());
  const sign = async () => {
    const sp = await serviceProvider(server, 'plain', {
      issuer: SP_ISSUER,
      identifierFormat: BY_ID.nameIdentifierFormat,
    });
    return signOn(createAgent(server), server, sp);
  };

  it('set and remove attributes, and name the user by one', async () => {
    await start(`if (event.transaction.protocol !== 'samlp') return;
      api.samlResponse.setAttribute('groups', ['keepers', 'captains']);
      api.samlResponse.setAttribute('level', 3);
      api.samlResponse.setAttribute('mail', null);
      api.samlResponse.setAttribute('staff', 'keeper-1');
      api.samlResponse.setNameIdentifierProbes(['staff']);
      api.samlResponse.setLifetimeInSeconds(120);
      api.samlResponse.setRecipient('${ACS}');`);
    const { profile } = await sign();
    const attributes = profile.attributes as Record<string, unknown>;
    expect(attributes.groups).to.deep.equal(['keepers', 'captains']);
    expect(attributes).to.include({ level: '3' }).and.not.have.property('mail');
    expect(profile.nameID).to.equal('keeper-1');
  });

  it('cannot address the response to another application, or to an address that the application does not have', async () => {
    const other = samlClient('other', { audience: 'https://other.example.test' });
    for (const lie of [
      `setAudience('https://other.example.test')`,
      `setRecipient('https://other.example.test/acs')`,
    ]) {
      await start(`api.samlResponse.${lie};`, [other]);
      const ended = await sign().then(
        ({ profile }) => JSON.stringify(profile),
        (thrown: Error) => thrown.message,
      );
      expect(ended).to.match(/RequestDenied|request denied|denied/i);
      await server.stop();
    }
    await start('');
  });

  const secret = (text: string) => JSON.stringify(text);
  const refusedBy = async (body: string, clients: object[] = []) => {
    await start(body, clients);
    const ended = await sign().then(
      () => 'a response',
      (thrown: Error) => thrown.message,
    );
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    await server.stop();
    return { ended, logs: JSON.stringify(records) };
  };

  it('sign with a key of their own, and name another issuer and relay state', async () => {
    const own = await makeCertificate();
    await start(`
      api.samlResponse.setCert(${secret(own.certificate)});
      api.samlResponse.setKey(${secret(own.privateKey)});
      api.samlResponse.setIssuer('urn:example:other-idp');
      api.samlResponse.setRelayState('the-action-state');`);
    const sp = await serviceProvider(server, 'plain', {
      issuer: SP_ISSUER,
      identifierFormat: BY_ID.nameIdentifierFormat,
      idpCert: own.certificate,
      idpIssuer: 'urn:example:other-idp',
    });
    const { profile, posted } = await signOn(createAgent(server), server, sp);
    expect(profile.issuer).to.equal('urn:example:other-idp');
    expect(posted.fields.RelayState).to.equal('the-action-state');
    expect(posted.xml).not.to.contain((await certificateOf(server)).split('\n')[1]);
    // The tenant's own key no longer fits.
    const ended = await sign().then(
      () => 'a response',
      () => 'refused',
    );
    expect(ended).to.equal('refused');
  });

  it('sign the response instead of the assertion, with stronger algorithms', async () => {
    await start(`
      api.samlResponse.setSignResponse(true);
      api.samlResponse.setSignatureAlgorithm('rsa-sha512');
      api.samlResponse.setDigestAlgorithm('sha512');`);
    const sp = await serviceProvider(server, 'plain', {
      issuer: SP_ISSUER,
      identifierFormat: BY_ID.nameIdentifierFormat,
      wantAssertionsSigned: false,
      wantAuthnResponseSigned: true,
    });
    const { posted } = await signOn(createAgent(server), server, sp);
    expect(posted.xml).to.contain('xmldsig-more#rsa-sha512').and.to.contain('xmlenc#sha512');
    expect(posted.xml.match(/<ds:SignatureValue>/g)).to.have.length(1);
    expect(posted.xml.indexOf('<ds:SignatureValue>')).to.be.below(posted.xml.indexOf('<saml:Assertion'));
  });

  it('never leave a response unsigned', async () => {
    const unsigned = samlClient('plain', { ...BY_ID, signResponse: true, signAssertion: false });
    server = await startSamlServer([unsigned], {
      users: [{ ...USER, email_verified: true }],
      ...actionsAt('post-login', { SAML: postLogin('api.samlResponse.setSignResponse(false);') }),
    });
    expect((await sign()).posted.xml).to.contain('<ds:SignatureValue>');
  });

  it('encrypt the assertion for a key of the application', async () => {
    const peer = await makeCertificate();
    for (const setters of [
      `api.samlResponse.setEncryptionCert(${secret(peer.certificate)}); api.samlResponse.setEncryptionAlgorithm('aes256-gcm');`,
      `api.samlResponse.setEncryptionPublicKey(${secret(
        createPublicKey(peer.certificate).export({ type: 'spki', format: 'pem' }) as string,
      )});`,
    ]) {
      await start(setters);
      const sp = await serviceProvider(server, 'plain', {
        issuer: SP_ISSUER,
        identifierFormat: BY_ID.nameIdentifierFormat,
        decryptionPvk: peer.privateKey,
      });
      const { posted, profile } = await signOn(createAgent(server), server, sp);
      expect(posted.xml).to.contain('EncryptedAssertion').and.not.to.contain(USER.email);
      expect((profile.attributes as Record<string, unknown>).mail).to.equal(USER.email);
      await server.stop();
    }
    await start('');
  });

  it('accept a request only if it was signed with the key that they name', async () => {
    const [own, other] = [await makeCertificate(), await makeCertificate()];
    const signing = `api.samlResponse.setSigningCert(${secret(own.certificate)});`;
    // The application's requests are not signed.
    expect((await refusedBy(signing)).ended).to.match(/denied/i);
    for (const [signingCert, accepts] of [
      [own.certificate, true],
      [other.certificate, false],
    ] as const) {
      await start(`if (event.client.client_id === 'signs') ${signing}`, [
        samlClient('signs', { ...BY_ID, audience: 'urn:example:signs', signingCert }),
      ]);
      const sp = await serviceProvider(server, 'signs', {
        issuer: 'urn:example:signs',
        audience: 'urn:example:signs',
        identifierFormat: BY_ID.nameIdentifierFormat,
        privateKey: signingCert === own.certificate ? own.privateKey : other.privateKey,
      });
      const ended = await signOn(createAgent(server), server, sp).then(
        () => true,
        (thrown: Error) => thrown.message,
      );
      if (accepts) expect(ended).to.equal(true);
      else expect(ended).to.match(/denied/i);
      await server.stop();
    }
    await start('');
  });

  it('cannot weaken the response or set what is no key, and the log names the method', async () => {
    const small = generateKeyPairSync('rsa', {
      modulusLength: 1024,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const { privateKey } = await makeCertificate();
    for (const [method, argument] of [
      ['setSignatureAlgorithm', 'rsa-sha1'],
      ['setDigestAlgorithm', 'sha1'],
      ['setEncryptionAlgorithm', 'aes256-cbc'],
      ['setCert', 'x'],
      ['setCert', small.publicKey],
      ['setKey', small.privateKey],
      ['setKey', `${privateKey}${' '.repeat(10_000)}`],
      ['setSigningCert', privateKey],
      ['setEncryptionCert', 'x'.repeat(11_000)],
      ['setEncryptionPublicKey', privateKey],
      ['setIssuer', ''],
      ['setRelayState', 'x'.repeat(3000)],
      ['setSignResponse', 'no'],
    ] as const) {
      const { ended, logs } = await refusedBy(`api.samlResponse.${method}(${secret(argument)});`);
      expect(ended, method).not.to.equal('a response');
      expect(logs, method).to.contain(`samlResponse.${method}`);
    }
    await start('');
  });

  it('cannot use a key without its certificate, or two keys to encrypt for', async () => {
    const [own, other] = [await makeCertificate(), await makeCertificate()];
    for (const body of [
      `setKey(${secret(own.privateKey)})`,
      `setCert(${secret(own.certificate)})`,
      `setCert(${secret(other.certificate)}); api.samlResponse.setKey(${secret(own.privateKey)})`,
      `setEncryptionCert(${secret(own.certificate)}); api.samlResponse.setEncryptionPublicKey(${secret(other.certificate)})`,
    ])
      expect((await refusedBy(`api.samlResponse.${body};`)).ended, body.slice(0, 20)).to.match(/denied/i);
    await start('');
  });

  it('store the key sealed while the user is away, and until the response', async () => {
    const own = await makeCertificate();
    const setKey = `api.samlResponse.setCert(${secret(own.certificate)});
      api.samlResponse.setKey(event.secrets.KEY);`;
    server = await startSamlServer([samlClient('plain', BY_ID)], {
      users: [{ ...USER, email_verified: true }],
      actions: [
        {
          name: 'SAML',
          code: `exports.onExecutePostLogin = async (event, api) => { ${setKey}
            api.redirect.sendUserTo('https://forms.example.test/terms'); };
            exports.onContinuePostLogin = async (event, api) => {
              api.redirect.sendUserTo('https://forms.example.test/more'); };`,
          secrets: [{ name: 'KEY', value: own.privateKey }],
          deployed: true,
          supported_triggers: [{ id: 'post-login' }],
        },
      ],
      triggers: { 'post-login': [{ action_name: 'SAML' }] },
    });
    const agent = createAgent(server);
    const sp = await serviceProvider(server, 'plain', { issuer: SP_ISSUER });
    const page = await follow(
      agent,
      await agent.get(await sp.getAuthorizeUrlAsync('', undefined, {})),
      server.url,
    );
    const away = await follow(agent, await submitLogin(agent, server, page), server.url);
    expect(away.location).to.match(/^https:\/\/forms\.example\.test\/terms/);
    const state = new URL(away.location).searchParams.get('state');
    const back = await follow(agent, await agent.get(`/continue?state=${state}`), server.url);
    expect(back.location).to.match(/^https:\/\/forms\.example\.test\/more/);
    const held = (await keptBy(server)).join('\n');
    expect(held).to.contain('forms.example.test');
    const line = own.privateKey.split('\n')[5] ?? '';
    expect(line).to.have.length(64);
    expect(held.includes(line)).to.equal(false);
  });
});
