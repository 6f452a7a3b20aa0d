import { expect } from 'chai';
import { firstLogoutUrl } from '../../src/features/logout/redirects.ts';
import { isLogoutUrlOf } from '../../src/records/clients/allowed-urls.ts';

const LIST = [
  'https://app.example.test',
  'https://app.example.test/out',
  'https://app.example.test:8443/out',
  'https://query.example.test/out?a=1',
  'https://*.wild.example.test/out',
  'https://*.com',
  'http://*.plain.example.test',
  'http://localhost:3000',
  'http://[::1]:3000/out',
  'com.example.app://out',
  'javascript:alert(1)',
  'data:text/html,x',
  'https://*',
  'https://ex*mple.test',
];

const owner = { allowed_logout_urls: LIST };

describe('the allow-list of logout URLs', () => {
  const allowed = [
    'https://app.example.test',
    'HTTPS://APP.example.TEST/out',
    'https://app.example.test:8443/out',
    'https://any.wild.example.test/out',
    'https://a-b-1.wild.example.test/out',
    'http://any.plain.example.test',
    'http://localhost:3000',
    'http://[::1]:3000/out',
    'com.example.app://out',
    'https://query.example.test/out?a=1',
  ];
  for (const address of allowed) {
    it(`allows ${address}`, () => {
      expect(isLogoutUrlOf(owner, address, 'whole')).to.equal(true);
      expect(isLogoutUrlOf(owner, address, 'without-query')).to.equal(true);
    });
  }

  const free = [
    'https://app.example.test/out?x=1&y=https://evil.example',
    'https://app.example.test/out#/route',
    'https://app.example.test?x=1',
    // The host ends at the #, whatever follows it.
    'https://app.example.test#@evil.example/out',
    'https://query.example.test/out?a=2',
    'https://query.example.test/out',
  ];
  for (const address of free) {
    it(`allows ${address} only when the query is ignored`, () => {
      expect(isLogoutUrlOf(owner, address, 'without-query')).to.equal(true);
      expect(isLogoutUrlOf(owner, address, 'whole')).to.equal(false);
    });
  }

  const refused: [string, string][] = [
    ['', 'empty'],
    ['/out', 'relative'],
    ['//app.example.test/out', 'protocol-relative'],
    ['https:app.example.test/out', 'without slashes'],
    ['https:/app.example.test/out', 'with one slash'],
    ['https:///app.example.test/out', 'with three slashes'],
    ['https://app.example.test/', 'another path'],
    ['https://app.example.test/OUT', 'a path in another case'],
    ['https://app.example.test/out/', 'a path with a slash more'],
    ['https://app.example.test/out/more', 'a longer path'],
    ['https://app.example.test/out/../out', 'a path that leads there'],
    ['https://app.example.test/./out', 'a path with a dot'],
    ['https://app.example.test/%6fut', 'an encoded path'],
    ['https://app.example.test//out', 'two slashes'],
    ['https://app.example.test:443/out', 'a port that is not written'],
    ['https://app.example.test:8444/out', 'another port'],
    ['https://app.example.test:/out', 'an empty port'],
    ['http://app.example.test/out', 'another scheme'],
    ['https://app.example.test./out', 'a trailing dot'],
    ['https://app.example.test.evil.example/out', 'a host that begins so'],
    ['https://evilapp.example.test/out', 'a host that ends so'],
    ['https://example.test/out', 'a parent'],
    ['https://sub.app.example.test/out', 'a sub-domain'],
    ['https://app.example.test@evil.example/out', 'a user name'],
    ['https://user@app.example.test/out', 'a user name before the right host'],
    ['https://user:pw@app.example.test/out', 'a password'],
    ['https://evil.example/https://app.example.test/out', 'a path that holds it'],
    ['https://evil.example\\@app.example.test/out', 'a backslash before @'],
    ['https://app.example.test\\.evil.example/out', 'a backslash in the host'],
    ['https:\\\\app.example.test/out', 'backslashes for slashes'],
    ['https://app.example.test\\out', 'a backslash for a slash'],
    ['https://app%2eexample.test/out', 'an encoded dot'],
    ['https://app.example.test%2f@evil.example/out', 'an encoded slash'],
    ['https://app。example.test/out', 'another full stop'],
    ['https://ａpp.example.test/out', 'a full-width letter'],
    ['https://app.example.test /out', 'a space'],
    [' https://app.example.test/out', 'a space before'],
    ['https://app.example.test/out ', 'a space after'],
    ['https://app.example.test/out\r\nSet-Cookie: a=b', 'a line break'],
    ['https://app.exa\tmple.test/out', 'a tab'],
    ['https://app.example.test/out\u0000', 'a null'],
    ['https://app.example.test/\u202eout', 'a turn of direction'],
    ['https://wild.example.test/out', 'a wildcard for nothing'],
    ['https://.wild.example.test/out', 'an empty label'],
    ['https://a.b.wild.example.test/out', 'two labels'],
    ['https://a..wild.example.test/out', 'a label and an empty one'],
    ['https://-a.wild.example.test/out', 'a label that begins with a dash'],
    ['https://evilwild.example.test/out', 'a wildcard without its dot'],
    ['https://evil.example/.wild.example.test/out', 'a wildcard in the path'],
    ['https://evil.example?.wild.example.test/out', 'a wildcard in the query'],
    ['https://evil.example#.wild.example.test/out', 'a wildcard in the fragment'],
    ['https://*.wild.example.test/out', 'the entry itself'],
    ['http://any.wild.example.test/out', 'a wildcard with http'],
    ['https://any.plain.example.test', "https where the entry's wildcard has http"],
    ['https://any.wild.example.test:8443/out', 'a wildcard with a port'],
    ['https://any.wild.example.test/other', 'a wildcard with another path'],
    ['https://evil.com', 'what a wildcard of a registry would let in'],
    ['https://evil.example', 'what a wildcard of everything would let in'],
    ['https://example.test', 'what a wildcard within a label would let in'],
    ['javascript:alert(1)', 'a script, though listed'],
    ['JavaScript:alert(1)', 'a script in another case'],
    ['java\nscript:alert(1)', 'a broken script'],
    ['data:text/html,x', 'data, though listed'],
    ['vbscript:x', 'an old script'],
    ['file:///etc/passwd', 'a file'],
    ['com.example.app://out/more', 'a longer address of a scheme'],
    ['COM.example.app://out', 'a scheme in another case'],
    ['com.example.app:out', 'a scheme without slashes'],
    ['http://127.0.0.1:3000', 'another name of localhost'],
    ['http://localhost:3000/', 'localhost with a path'],
  ];
  for (const [address, why] of refused) {
    it(`refuses ${JSON.stringify(address)}: ${why}`, () => {
      expect(isLogoutUrlOf(owner, address, 'whole')).to.equal(false);
      expect(isLogoutUrlOf(owner, address, 'without-query')).to.equal(false);
    });
  }

  it('allows nothing when it is empty', () => {
    expect(isLogoutUrlOf({ allowed_logout_urls: [] }, 'https://app.example.test', 'without-query')).to.equal(
      false,
    );
    expect(isLogoutUrlOf({ allowed_logout_urls: [''] }, '', 'without-query')).to.equal(false);
  });

  it('has as its first usable entry the first URL that is no pattern', () => {
    const first = (...list: string[]) => firstLogoutUrl({ allowed_logout_urls: list });
    expect(
      first(
        'javascript:alert(1)',
        'https://*.example.test',
        'https://{organization_name}.example.test',
        'https://a.test',
        'https://b.test',
      ),
    ).to.equal('https://a.test');
    expect(first('https://*.example.test')).to.equal(undefined);
    expect(first()).to.equal(undefined);
  });
});
