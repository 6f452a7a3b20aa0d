// The metadata of a SAML identity provider: read when a connection is saved, or when it is first needed.
import { expect } from 'chai';
import { callApi, startManaged } from '../../management/support.ts';
import { type KeyAndCertificate, makeCertificate } from '../../saml/support.ts';
import { createAgent } from '../../support/agent.ts';
import { authorize, follow, responseOf, webRequest } from '../../support/flows.ts';
import type { TestServer } from '../../support/server.ts';
import { aMoment } from '../../support/wait-until.ts';
import { metadata, publish } from './metadata-server.ts';
import { IDP, type SamlWorld, SIGN_IN, SIGN_OUT, samlWorld } from './provider.ts';

describe('the metadata of a SAML identity provider', () => {
  let server: TestServer;
  let published: Awaited<ReturnType<typeof publish>>;
  let keys: KeyAndCertificate[];
  before(async () => {
    keys = [await makeCertificate(), await makeCertificate()];
    published = await publish();
    server = await startManaged();
  });
  after(async () => {
    await server?.stop();
    await published?.stop();
  });

  let count = 0;
  const create = async (options: object) => {
    const answer = await callApi(server, 'POST', '/connections', {
      name: `from-${count++}`,
      strategy: 'samlp',
      options,
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const all = () => keys.map(({ certificate }) => certificate);

  it('is not fetched from a URL with user and password, which appear in no answer or log', async () => {
    const requestsBefore = published.requests();
    const { status, body } = await create({ metadataUrl: published.url.replace('//', '//user:hush-hush@') });
    expect(status).to.equal(400);
    expect(JSON.stringify(body)).to.contain('refused').and.not.contain('hush-hush');
    expect(server.logged()).not.to.contain('hush-hush');
    expect(published.requests()).to.equal(requestsBefore);
  });

  it('sets the URLs, the entity ID and every certificate when a connection is saved', async () => {
    published.set(metadata(all()));
    for (const options of [{ metadataUrl: published.url }, { metadataXml: metadata(all()) }]) {
      const { status, body } = await create(options);
      expect(status).to.equal(201);
      expect(body.options).to.include({
        ...options,
        signInEndpoint: SIGN_IN,
        signOutEndpoint: SIGN_OUT,
        signOutResponseEndpoint: `${SIGN_OUT}/answer`,
        issuer: IDP,
      });
      expect(String((body.options as { signingCert: string }).signingCert).match(/BEGIN/g)).to.have.length(2);
    }
  });

  it('may have 100,000 characters, as that of AD FS does, which describes every claim it knows', async () => {
    const claim = (at: number) =>
      `<auth:ClaimType Uri="http://schemas.example.test/claims/${at}" Optional="true" xmlns:auth="http://docs.oasis-open.org/wsfed/authorization/200706"><auth:DisplayName>Claim ${at}</auth:DisplayName><auth:Description>What the claim ${at} says.</auth:Description></auth:ClaimType>`;
    const role = (claims: string) =>
      `<md:RoleDescriptor xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:fed="http://docs.oasis-open.org/wsfed/federation/200706" xsi:type="fed:SecurityTokenServiceType" protocolSupportEnumeration="http://docs.oasis-open.org/ws-sx/ws-trust/200512"><fed:ClaimTypesOffered>${claims}</fed:ClaimTypesOffered></md:RoleDescriptor>`;
    const claims = Array.from({ length: 310 }, (_, at) => claim(at)).join('');
    const whole = metadata(all()).replace('<md:IDPSSODescriptor', `${role(claims)}$&`);
    const text = `${whole}${' '.repeat(100_000 - whole.length)}`;
    expect(text).to.have.length(100_000);
    published.set(text);
    for (const options of [{ metadataUrl: published.url }, { metadataXml: text }]) {
      const { status, body } = await create(options);
      expect(status, JSON.stringify(body)).to.equal(201);
      expect(body.options).to.include({ signInEndpoint: SIGN_IN, issuer: IDP });
    }
  });

  it('is read again when the options are changed, and replaces what they had', async () => {
    published.set(metadata(all()));
    const { body } = await create({ metadataUrl: published.url });
    published.set(metadata(all().slice(1), { signIn: `${SIGN_IN}/new` }));
    const path = `/connections/${body.id}`;
    const changed = (await (await callApi(server, 'PATCH', path, { options: body.options })).json()) as {
      options: { signInEndpoint: string; signingCert: string };
    };
    expect(changed.options.signInEndpoint).to.equal(`${SIGN_IN}/new`);
    expect(changed.options.signingCert.match(/BEGIN/g)).to.have.length(1);
    const before = published.requests();
    expect((await callApi(server, 'PATCH', path, { display_name: 'Other' })).status).to.equal(200);
    expect(published.requests()).to.equal(before);
  });

  const unusable: Record<string, () => string> = {
    'is not XML': () => 'no metadata',
    'describes a service provider': () =>
      '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="x"><SPSSODescriptor/></EntityDescriptor>',
    'has no certificate': () => metadata([]),
    'has no usable SingleSignOnService': () =>
      metadata(all(), { signIn: 'javascript:alert(1)' }).replace(
        /<md:SingleSignOnService[^>]*POST[^>]*>/,
        '',
      ),
    'has a document type': () => metadata(all()).replace('<md:Ent', '<!DOCTYPE x [<!ENTITY y "z">]><md:Ent'),
    'describes two providers': () =>
      `<md:EntitiesDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata">${[1, 2].map(() => metadata(all()).replace(/^.*-->/, '')).join('')}</md:EntitiesDescriptor>`,
  };
  for (const [what, make] of Object.entries(unusable)) {
    it(`is rejected with 400 if it ${what}`, async () => {
      published.set(make());
      for (const options of [{ metadataUrl: published.url }, { metadataXml: make() }]) {
        const { status, body } = await create(options);
        expect([status, body.statusCode]).to.deep.equal([400, 400]);
        expect(String(body.message)).to.match(/metadata|SAML/);
      }
    });
  }

  it('causes a 400 if it cannot be fetched', async () => {
    published.set('', 404);
    const refusals: [string, RegExp][] = [
      [published.url, /status 404/],
      ['http://127.0.0.1:1/metadata', /unreachable/],
      ['https://10.0.0.1/metadata', /refused/],
      ['file:///etc/passwd', /refused/],
    ];
    for (const [metadataUrl, words] of refusals) {
      const { status, body } = await create({ metadataUrl });
      expect(status, metadataUrl).to.equal(400);
      expect(String(body.message)).to.match(words);
    }
  });

  describe('of a tenant file', () => {
    let world: SamlWorld;
    before(async () => {
      published.set(metadata(all()));
      const before = published.requests();
      world = await samlWorld(() => ({
        signInEndpoint: undefined,
        signingCert: undefined,
        metadataUrl: published.url,
      }));
      // The check at the start fetches it in the background, which must not be counted below.
      for (const end = performance.now() + 20_000; published.requests() === before; ) {
        expect(performance.now(), 'the metadata was not fetched').to.be.below(end);
        await aMoment();
      }
    });
    after(() => world.server.stop());

    it('is fetched at a login and again after an hour; if that fails, the previous metadata is used', async () => {
      published.set(metadata([world.key.certificate]));
      const away = await world.away();
      expect(`${away.at.origin}${away.at.pathname}`).to.equal(SIGN_IN);
      expect(await world.finish(away.agent, await world.post(away, world.answer(away)))).to.have.property(
        'code',
      );
      const before = published.requests();
      await world.away();
      expect(published.requests()).to.equal(before);
      published.set('', 500);
      world.server.tick(3_700_000);
      expect((await world.away()).at.origin).to.equal(new URL(SIGN_IN).origin);
      expect(published.requests()).to.equal(before + 1);
      published.set(metadata([world.key.certificate], { signIn: `${SIGN_IN}/moved` }));
      const moved = await world.away();
      expect(`${moved.at.origin}${moved.at.pathname}`).to.equal(`${SIGN_IN}/moved`);
    });

    it('is used for a day by every login while the provider does not answer', async () => {
      published.set(metadata([world.key.certificate]));
      world.server.tick(3_700_000);
      await world.away();
      published.set('', 500);
      const begin = () => authorize(createAgent(world.server), webRequest({ connection: 'acme' }));
      world.server.tick(3_700_000);
      const logins = [...(await Promise.all([begin(), begin(), begin()])), await begin(), await begin()];
      for (const { location } of logins) expect(location).to.contain(`${SIGN_IN}?`);
      world.server.tick(86_400_000);
      const agent = createAgent(world.server);
      const late = await authorize(agent, webRequest({ connection: 'acme' }));
      const told = responseOf(await follow(agent, late, world.server.url));
      expect(told.error_description).to.contain('cannot be fetched: status 500');
    });
  });
});

describe('the options of a SAML connection', () => {
  let server: TestServer;
  let key: KeyAndCertificate;
  before(async () => {
    key = await makeCertificate();
    server = await startManaged();
  });
  after(() => server.stop());

  const refusals: [string, (good: object) => object, RegExp][] = [
    ['with an invalid certificate', (good) => ({ ...good, signingCert: 'no certificate' }), /signingCert/],
    [
      'with a URL that is not https',
      (good) => ({ ...good, signInEndpoint: 'javascript:alert(1)' }),
      /signInEndpoint/,
    ],
    ['with an unknown binding', (good) => ({ ...good, protocolBinding: 'SOAP' }), /protocolBinding/],
    ['with an unknown algorithm', (good) => ({ ...good, signatureAlgorithm: 'hmac' }), /signatureAlgorithm/],
    [
      'with a template without an ID',
      (good) => ({ ...good, requestTemplate: '<samlp:AuthnRequest x="y"/>' }),
      /requestTemplate/,
    ],
    ['with an invalid key', (good) => ({ ...good, decryptionKey: 'x' }), /decryptionKey/],
    [
      'with idpinitiated without client_id',
      (good) => ({ ...good, idpinitiated: { enabled: true } }),
      /client_id/,
    ],
    [
      'with idpinitiated by WS-Federation',
      (good) => ({ ...good, idpinitiated: { enabled: true, client_id: 'web', client_protocol: 'wsfed' } }),
      /client_protocol/,
    ],
  ];
  for (const [what, make, words] of refusals) {
    it(`are rejected ${what}`, async () => {
      const options = make({ signInEndpoint: SIGN_IN, signingCert: key.certificate });
      const answer = await callApi(server, 'POST', '/connections', {
        name: 'wrong',
        strategy: 'samlp',
        options,
      });
      expect(answer.status).to.equal(400);
      expect(((await answer.json()) as { message: string }).message).to.match(words);
    });
  }
});
