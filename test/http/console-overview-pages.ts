// States of the console's overview.
import { barsOf, CHART } from '../../src/features/console/overview/console-overview-routes.ts';

const values = [0, 3, 12, 40, 8, 0, 1];
const rows = values.map((value, n) => ({
  time: { iso: `2026-11-${10 + n}T00:00:00.000Z`, text: `Nov ${10 + n}, 2026 UTC` },
  value: String(value),
}));

/** The data of the overview, without what all pages of the console share. */
export const overviewModel = {
  attention: [
    {
      isBad: true,
      text: 'console.attention.messages',
      count: 3,
      why: '535 <b>Authentication failed</b> for a-very-long-name-of-a-mailbox-that-nobody-can-break@mail.example.test',
      path: '/console/log?type=fn',
    },
    {
      isBad: false,
      text: 'console.attention.key',
      name: 'RS256',
      count: 200,
      path: '/console/security/keys',
    },
    { isBad: true, text: 'console.attention.certificate.client.over', name: 'The Shop' },
  ],
  ranges: ['24h', '7d', '30d'].map((name) => ({
    path: `/console?range=${name}`,
    text: `console.overview.range.${name}`,
    isCurrent: name === '7d',
  })),
  isBehind: true,
  charts: ['logins', 'failures', 'signups', 'active', 'codes', 'lockouts'].map((name) => ({
    name,
    text: `console.overview.${name}`,
    range: 'console.overview.range.7d',
    total: '1,234,567',
    size: CHART,
    bars: barsOf(values),
    rows,
    first: rows[0]?.time,
    last: rows.at(-1)?.time,
    ...(name !== 'active' && { path: `/console/log?type=${name}` }),
  })),
};
