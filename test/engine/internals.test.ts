import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import Provider from 'oidc-provider';
import {
  ENGINE_VERSION,
  engineClientAuthentication,
  issueTokenResponse,
} from '../../src/engine/base/internals.ts';
import { readGrantParameters } from '../../src/engine/provider/adaptations.ts';

const require = createRequire(import.meta.url);

describe('the inner modules of oidc-provider that we import', () => {
  it('have the version that our code was written against', () => {
    const installed = JSON.parse(readFileSync(require.resolve('oidc-provider/package.json'), 'utf8')).version;
    const pinned = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
      .dependencies['oidc-provider'];
    expect({ installed, pinned }).to.deep.equal({ installed: ENGINE_VERSION, pinned: ENGINE_VERSION });
  });

  it('exist', () => {
    expect(engineClientAuthentication).to.have.length(3);
    for (const middleware of engineClientAuthentication) expect(middleware).to.be.a('function');
    expect(issueTokenResponse).to.be.a('function');
    const provider = new Provider('https://localhost/', { jwks: { keys: [] } }) as unknown as Record<
      string,
      any
    >; // any: the classes are untyped inside
    expect(provider.Client.prototype.includeSid).to.be.a('function');
    expect(provider.Client.prototype.responseTypeAllowed).to.be.a('function');
    expect(provider.Client.Schema.prototype.redirectUris).to.be.a('function');
    expect(provider.OIDCContext.prototype.clientJwtAuthExpectedAudience).to.be.a('function');
    expect(provider.IdToken.prototype.payload).to.be.a('function');
    expect(provider.Session.prototype.ensureClientContainer).to.be.a('function');
    expect(provider.Session.IN_PAYLOAD).to.include.members(['uid', 'accountId', 'authorizations']);
    expect(provider.Grant.IN_PAYLOAD).to.include.members(['accountId', 'clientId', 'openid', 'resources']);
  });

  it('read only the parameters of the requested grant, and those of all grants for an unknown one', () => {
    const all = new Set(['grant_type']);
    const known = new Map([
      [undefined, all],
      ['a', new Set(['grant_type', 'of_a'])],
    ]);
    let asked: unknown;
    readGrantParameters(known, () => asked);
    for (const name of ['of_a', 'of_b']) all.add(name);
    const read = (grantType?: unknown) => {
      asked = grantType;
      return [...all];
    };
    expect(read('a')).to.deep.equal(['grant_type', 'of_a']);
    for (const other of [undefined, 'b', '', ['a', 'b'], 'constructor'])
      expect(read(other), String(other)).to.deep.equal(['grant_type', 'of_a', 'of_b']);
  });
});
