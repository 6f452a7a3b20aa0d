// What actions of post-login set in a SAML response.
import { expect } from 'chai';
import { ACS, SP_ISSUER, samlClient, serviceProvider, signOn, startSamlServer } from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

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
      actions: [
        {
          name: 'SAML',
          code: `exports.onExecutePostLogin = async (event, api) => {\n${body}\n};`,
          deployed: true,
          supported_triggers: [{ id: 'post-login' }],
        },
      ],
      triggers: { 'post-login': [{ action_name: 'SAML' }] },
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

  it('cannot change signature, encryption or issuer', async () => {
    for (const method of [
      'setCert',
      'setKey',
      'setSigningCert',
      'setIssuer',
      'setSignatureAlgorithm',
      'setEncryptionCert',
    ]) {
      await start(`api.samlResponse.${method}('x');`);
      const ended = await sign().then(
        () => 'a response',
        (thrown: Error) => thrown.message,
      );
      expect(ended, method).not.to.equal('a response');
      await server.stop();
    }
    await start('');
  });
});
