import { expect } from 'chai';
import { parseQuery } from '../../src/features/management/search/lucene.ts';

const term = (field: string | undefined, text: string) => ({ field, match: { kind: 'text', text } });

describe('the search syntax', () => {
  const cases: [string, unknown][] = [
    ['email:"ada@example.test"', term('email', 'ada@example.test')],
    ['ada', term(undefined, 'ada')],
    ['user_id:auth0\\|abc\\-1', term('user_id', 'auth0|abc-1')],
    ['a:x AND NOT b:y', { all: [term('a', 'x'), { not: term('b', 'y') }] }],
    ['a:x OR b:y AND c:z', { any: [term('a', 'x'), { all: [term('b', 'y'), term('c', 'z')] }] }],
    ['a:x -b:y', { all: [term('a', 'x'), { not: term('b', 'y') }] }],
    ['a:x c:z -b:y', { all: [{ any: [term('a', 'x'), term('c', 'z')] }, { not: term('b', 'y') }] }],
    ['a:x OR -b:y', { any: [term('a', 'x'), { not: term('b', 'y') }] }],
    ['a:x +b:y', term('b', 'y')],
    ['a:x b:y', { any: [term('a', 'x'), term('b', 'y')] }],
    ['name:("a b" OR c)', { any: [term('name', 'a b'), term('name', 'c')] }],
    ['_exists_:phone_number', { field: 'phone_number', match: { kind: 'exists' } }],
    ['email:*@example.test', { field: 'email', match: { kind: 'pattern', parts: ['', '@example.test'] } }],
    ['name:jo*', { field: 'name', match: { kind: 'pattern', parts: ['jo', ''] } }],
    [
      'logins_count:[1 TO *}',
      {
        field: 'logins_count',
        match: { kind: 'range', from: '1', isFromIncluded: true, isToIncluded: false },
      },
    ],
    ['email.domain:example.test', term('email.domain', 'example.test')],
    [
      'created_at:["2026-01-01T00:00:00Z" TO 2026-02-01]',
      {
        field: 'created_at',
        match: {
          kind: 'range',
          from: '2026-01-01T00:00:00Z',
          to: '2026-02-01',
          isFromIncluded: true,
          isToIncluded: true,
        },
      },
    ],
  ];
  for (const [text, expected] of cases) {
    it(`parses ${text}`, () => expect(parseQuery(text)).to.deep.equal(expected));
  }

  for (const text of [
    '',
    '(',
    'a:',
    'a:(b',
    'a AND',
    'OR',
    '"a',
    '[a TO',
    'a:b:c)',
    'a:(b:c)',
    '('.repeat(5000),
    'NOT '.repeat(900),
  ]) {
    it(`rejects ${text.slice(0, 20) || 'an empty query'}`, () =>
      expect(() => parseQuery(text)).to.throw('Invalid search query'));
  }
});
