// The options of custom social connections are judged when they are written, and not at the first login.
import { expect } from 'chai';
import { connectionSchema } from '../../../src/records/connections.ts';
import { oauth2OptionsSchema } from '../../../src/records/oauth2.ts';

const options = {
  authorizationURL: 'https://idp.example.test/authorize',
  tokenURL: 'https://idp.example.test/token',
  client_id: 'ours',
};

/** What is wrong with a connection, by the option. */
function faults(more: object, name = 'acme'): string[] {
  const connection = { name, strategy: 'oauth2', options: { ...options, ...more } };
  const { error } = connectionSchema.safeParse(connection);
  return (error?.issues ?? []).map(({ path }) => path.join('.'));
}

describe('the options of a custom social connection', () => {
  const taken: [string, object][] = [
    ['a scope as a text', { scope: 'a b' }],
    ['a scope as a list', { scope: ['a', 'b'] }],
    ['addresses of this machine without TLS', { tokenURL: 'http://localhost:4000/token' }],
    ['null for what is not set', { client_secret: null, scope: null, scripts: { fetchUserProfile: null } }],
    ['a script that is none', { scripts: { fetchUserProfile: 'function( {' } }],
    ['a script of 102,400 characters', { scripts: { fetchUserProfile: 'x'.repeat(102_400) } }],
    ['an empty icon and logout address', { icon_url: '', logoutUrl: '' }],
    ['what it does not know', { strategy_version: 2, email: true }],
  ];
  for (const [what, more] of taken) {
    it(`may have ${what}`, () => {
      expect(faults(more)).to.deep.equal([]);
      expect(() => oauth2OptionsSchema.parse({ ...options, ...more })).not.to.throw();
    });
  }

  const refused: [string, object, string][] = [
    ['a client_id that is too long', { client_id: 'x'.repeat(129) }, 'client_id'],
    ['a secret that is too long', { client_secret: 'x'.repeat(1025) }, 'client_secret'],
    ['an address without TLS', { tokenURL: 'http://idp.example.test/token' }, 'tokenURL'],
    ['an address of another scheme', { authorizationURL: 'javascript:alert(1)' }, 'authorizationURL'],
    ['an address that is none', { authorizationURL: '/authorize' }, 'authorizationURL'],
    ['an address with a user name', { tokenURL: 'https://a:b@idp.example.test/' }, 'tokenURL'],
    ['an address with a fragment', { authorizationURL: 'https://idp.example.test/#/a' }, 'authorizationURL'],
    ['an icon without TLS', { icon_url: 'http://idp.example.test/i.svg' }, 'icon_url'],
    ['an icon that is a script', { icon_url: 'javascript:alert(1)' }, 'icon_url'],
    ['a logout address without TLS', { logoutUrl: 'http://idp.example.test/out' }, 'logoutUrl'],
    ['a header with a line break', { customHeaders: { 'X-A': 'a\r\nX-B: b' } }, 'customHeaders.X-A'],
    ['a header with a name that is none', { customHeaders: { 'X A': 'a' } }, 'customHeaders.X A'],
    [
      'a header of the request itself',
      { customHeaders: { 'Content-Length': '1' } },
      'customHeaders.Content-Length',
    ],
    [
      'a script that is too long',
      { scripts: { fetchUserProfile: 'x'.repeat(102_401) } },
      'scripts.fetchUserProfile',
    ],
    ['a mapping to no text', { authParamsMap: { a: { b: 1 } } }, 'authParamsMap.a'],
    [
      'a parameter of both kinds',
      { upstream_params: { a: { value: 'x', alias: 'y' } } },
      'upstream_params.a',
    ],
    [
      'another time for root attributes',
      { set_user_root_attributes: 'sometimes' },
      'set_user_root_attributes',
    ],
    ['a toggle that is a text', { pkce_enabled: 'yes' }, 'pkce_enabled'],
  ];
  for (const [what, more, at] of refused) {
    it(`may not have ${what}`, () => {
      expect(faults(more)).to.deep.equal([`options.${at}`]);
    });
  }

  for (const name of ['-a', 'a-', 'a_b', 'a b', 'ä', 'a|b', '']) {
    it(`belong to no connection of the name "${name}"`, () => {
      expect(faults({}, name)).to.deep.equal(['name']);
    });
  }
});
