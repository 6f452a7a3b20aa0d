// The lines of the hardening checklist about the server: its settings, its machine, its store and its keys.
import { isIP } from 'node:net';
import { addressList, isAddressRange, parsePlain } from '../../../http/addresses.ts';
import { isLoopback } from '../../../http/loopback.ts';
import { sinkOf } from '../../../records/tenant/log-streams.ts';
import { VERSION } from '../../../runtime/version.ts';
import { openingsOf } from '../../../server/administration/inspect.ts';
import { isDatabaseNear } from '../../../store/store-settings.ts';
import { DAY_MS } from '../finding.ts';
import { type Facts, type HardeningLine, named, noneOf, passed, toDo, unseen } from './line.ts';

/** The shortest prefix of a range that is narrow enough to be a choice. */
const WIDEST = { 4: 16, 6: 48 } as const;

/** Age of a signing key above which a rotation is due, days. */
const OLD_KEY_DAYS = 180;

function isWide(range: string): boolean {
  const [address = '', prefix] = range.split('/');
  const plain = parsePlain(address);
  if (plain === undefined || prefix === undefined) return false;
  const isIn = addressList([range]);
  if (isIn('0.0.0.0') && isIn('255.255.255.255')) return true;
  if (plain.kind() === 'ipv6') return Number(prefix) < WIDEST[6];
  // IPv4 may be written as IPv6 (::ffff:192.0.2.0/120; RFC 4291 §2.5.5.2).
  return Number(prefix) - (isIP(address) === 6 ? 96 : 0) < WIDEST[4];
}

/**
 * What a script or a configuration must not reach through the server: this machine, under any of its addresses, and the
 * metadata services of clouds.
 */
const NEVER = ['127.0.0.1', '::1', '0.0.0.0', '::', '169.254.169.254', 'fd00:ec2::254', '100.100.100.200'];
const NEVER_NAMED = ['metadata', 'metadata.google.internal'];

function reachesTooFar(entry: string): boolean {
  const [base = ''] = entry.split('/');
  if (isLoopback(base)) return true;
  if (!isAddressRange(entry)) return NEVER_NAMED.includes(entry.toLowerCase().replace(/\.$/, ''));
  return isWide(entry) || NEVER.some(addressList([entry]));
}

/** Whether a log stream leaves this machine. */
function isSentAway({ type, status = 'active', sink }: LogStream): boolean {
  const kind = sinkOf(type);
  if (kind === undefined || type === 'file' || status !== 'active') return false;
  const address = URL.parse(kind.address(sink) ?? '');
  return address === null || !isLoopback(address.hostname);
}

type LogStream = NonNullable<Facts['tenant']['logStreams']>[number];

export const SERVER_LINES: readonly HardeningLine[] = [
  {
    id: 'production',
    demand:
      'Set `NODE_ENV=production`. The server then refuses the secrets and users of the example, short secrets, the local CA and the development pages.',
    check: ({ settings }) =>
      settings.production ? passed('NODE_ENV is production') : toDo('set NODE_ENV=production'),
  },
  {
    id: 'https',
    demand:
      'Let the server or a proxy in front of it end TLS with a certificate that browsers trust (`TLS=files` or `TLS=proxy`), and accept TLS 1.2 and later only (RFC 9325).',
    check: ({ settings: { tls } }) => {
      if (tls.mode === 'auto') return toDo('TLS=auto is a local CA: set TLS=files or TLS=proxy');
      return tls.mode === 'files'
        ? passed('the server ends TLS with your certificate')
        : unseen('look at the TLS versions and ciphers of the proxy');
    },
  },
  {
    id: 'trusted-proxies',
    demand:
      'Name the proxies in `TRUSTED_PROXIES`, not their whole network. Whoever is in the list can say which address a request comes from, and so escape limits and locks.',
    check: ({ settings: { tls } }) =>
      tls.mode === 'proxy'
        ? noneOf(tls.trustedProxies.filter(isWide), {
            todo: 'name the proxies themselves in TRUSTED_PROXIES, in place of',
            good: 'TRUSTED_PROXIES is narrow',
          })
        : passed('no proxy is trusted'),
  },
  {
    id: 'plain-port',
    demand: 'With `TLS=proxy`, let only the proxy reach the port of the server, which speaks plain HTTP.',
    check: ({ settings: { tls, host } }) => {
      if (tls.mode !== 'proxy') return passed('there is no port for plain HTTP');
      return isLoopback(host)
        ? passed('it listens on this machine only')
        : unseen(`HOST is ${host}: see that the firewall lets only the proxy in`);
    },
  },
  {
    id: 'user',
    demand:
      'Run the server as a user of its own, not as root, so that a fault in it is not one of the machine.',
    check: ({ inspection, uid: own }) => {
      // The server's own, where one is running: this command may be run by another user.
      const uid = inspection?.uid ?? own;
      if (uid === undefined) return unseen('see that the service has an account of its own');
      return uid === 0
        ? toDo('this is root: run the server as a user of its own')
        : passed(`this is user ${uid}`);
    },
  },
  {
    id: 'process',
    demand: 'Open no debugger of the process (`--inspect`), and do not switch off the check of certificates.',
    check: ({ inspection, env }) =>
      noneOf([...new Set([...openingsOf(env), ...(inspection?.openings ?? [])])], {
        todo: 'unset it',
        good: 'the process has no such option',
      }),
  },
  {
    id: 'files',
    demand: 'Keep `DATA_DIR` and the key in it readable by the server’s user alone (modes 0700 and 0600).',
    check: ({ readableByOthers, uid }) => {
      if (uid === undefined) return unseen('look at the access control list of the directory');
      return readableByOthers === undefined ? passed('others can read neither') : toDo(readableByOthers);
    },
  },
  {
    id: 'secrets-key',
    demand:
      'Give the server its key by `SECRETS_KEY`, from a secret manager, so that a copy of the disk does not contain both the store and the key. Move it with `gatehouse keys reseal`.',
    check: ({ settings }) =>
      settings.secretsKey === undefined
        ? toDo('the key is a file beside the store: set SECRETS_KEY and run gatehouse keys reseal')
        : passed('the key comes from SECRETS_KEY'),
  },
  {
    id: 'database-tls',
    demand: 'With `DATABASE_URL`, connect with `sslmode=verify-full`.',
    check: ({ settings: { databaseUrl } }) => {
      const url = databaseUrl === undefined ? undefined : URL.parse(databaseUrl);
      if (url == null) return passed('the store is in files of this machine');
      const mode = url.searchParams.get('sslmode');
      if (mode !== null && mode !== 'disable') return passed(`sslmode=${mode} checks the certificate`);
      return isDatabaseNear(url)
        ? passed('the database is on this machine')
        : toDo('set sslmode=verify-full in DATABASE_URL');
    },
  },
  {
    id: 'outbound',
    demand:
      'Open with `OUTBOUND_ALLOW` only the hosts that providers, scripts and log streams need: never this machine, nor the metadata service of a cloud, nor a whole network.',
    check: ({ settings: { outboundAllow = [] } }) =>
      noneOf(outboundAllow.filter(reachesTooFar), {
        todo: 'take from OUTBOUND_ALLOW',
        good: 'OUTBOUND_ALLOW opens nothing of the kind',
      }),
  },
  {
    id: 'metrics',
    demand:
      'Serve metrics on the loopback address, or with `METRICS_TOKEN`: they tell attackers how they are doing.',
    check: ({ settings: { metrics } }) => {
      if (metrics === undefined) return passed('there are no metrics');
      return metrics.token !== undefined || isLoopback(metrics.host)
        ? passed('strangers cannot read them')
        : toDo(`METRICS_HOST is ${metrics.host}: set METRICS_TOKEN too`);
    },
  },
  {
    id: 'console',
    demand:
      'Give the console a host of its own (`CONSOLE_URL`), or turn it off where you do not need it (`CONSOLE=off`). Pages with the tenant’s own scripts then have another origin.',
    check: ({ settings: { console, consoleUrl, baseUrl } }) => {
      if (!console) return passed('there is no console');
      return consoleUrl !== undefined && new URL(consoleUrl).host !== new URL(baseUrl).host
        ? passed(`it is at ${consoleUrl} only`)
        : toDo('set CONSOLE_URL or CONSOLE=off');
    },
  },
  {
    id: 'administrators',
    demand:
      'Let each administrator set up a second factor at the account page. It is then asked for at every login.',
    check: ({ inspection, settings }) => {
      if (!settings.console) return passed('nobody can log in to a console');
      return inspection === undefined
        ? unseen('there is no store yet: look again after the first start')
        : noneOf(inspection.administratorsWithoutFactor, {
            todo: 'a second factor is missing for',
            good: 'each has a second factor',
          });
    },
  },
  {
    id: 'signing-keys',
    demand:
      'Rotate the signing keys a few times a year (`gatehouse keys rotate`), and at once when you suspect a copy. For keys that cannot be copied, keep them outside (`SIGNING`).',
    check: ({ inspection, now }) =>
      inspection === undefined
        ? unseen('there is no store yet: the first start makes the keys')
        : noneOf(
            inspection.signingKeys
              .filter(({ signsSince }) => now - signsSince * 1000 > OLD_KEY_DAYS * DAY_MS)
              .map(({ alg }) => alg),
            {
              todo: `run gatehouse keys rotate, because of keys of more than ${OLD_KEY_DAYS} days for`,
              good: `none is older than ${OLD_KEY_DAYS} days`,
            },
          ),
  },
  {
    id: 'audit-log',
    demand:
      'Forward the log to another machine with a log stream, so that whoever gets this one cannot erase it, and have somebody look at it.',
    check: ({ tenant: { logStreams = [] } }) => {
      const active = logStreams.filter(isSentAway);
      return active.length > 0
        ? passed(`it goes to ${named(active.map(({ name, type }) => String(name ?? type)))}`)
        : toDo('no active log stream sends it away');
    },
  },
  {
    id: 'outbox',
    demand: 'Do not take the `DATA_DIR` of development into production: its outbox contains codes and links.',
    check: ({ outboxFiles }) =>
      outboxFiles > 0
        ? toDo(`remove the outbox, which has ${outboxFiles} files`)
        : passed('there is no outbox'),
  },
  {
    id: 'backups',
    demand:
      'Encrypt backups, keep the key (`SECRETS_KEY`) in another place than they are, and try a restore from time to time. Personal data and password hashes in a backup are not sealed.',
    check: () => unseen('look where backups and the key are kept, and when a restore was last tried'),
  },
  {
    id: 'disk',
    demand: 'Encrypt the disk of the server and of the database.',
    check: () => unseen('look at the settings of the disk or the cloud'),
  },
  {
    id: 'updates',
    demand:
      'Install new releases of Gatehouse and of Node.js within days. Only the latest minor release is mended.',
    check: () =>
      unseen(`this is Gatehouse ${VERSION} on Node.js ${process.versions.node}: compare with the latest`),
  },
];
