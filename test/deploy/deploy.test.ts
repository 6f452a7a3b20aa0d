// The files in deploy/, checked without a container engine or a cluster: they are well-formed, and each setting, port,
// and path that they name exists.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { DCLinter } from 'dclint';
import { parse, parseAllDocuments } from 'yaml';
import { imageConfiguration } from '../../build/image/configuration.ts';
import { USER } from '../../build/image/roots.ts';
import { FEATURES } from '../../src/server/features.ts';
import { describedSettings, readSettings } from '../../src/settings/index.ts';
import { SCRATCH } from '../support/scratch-directory.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const NAMES = new Set(describedSettings().map(({ name }) => name));
/** Variables that the system, Node.js and glibc read. */
const OF_NODE = ['PATH', 'NODE_OPTIONS', 'MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_'];

const dockerfile = read('deploy/Dockerfile');
const compose = parse(read('deploy/compose.yaml'));
const manifests = parseAllDocuments(read('deploy/kubernetes/gatehouse.yaml')).map((one) => {
  expect(one.errors).to.deep.equal([]);
  return one.toJS();
});
const ofKind = (kind: string) => manifests.find((one) => one.kind === kind);
const pod = ofKind('Deployment').spec.template.spec;
const [container] = pod.containers;
const unit = read('deploy/gatehouse.service');

const image = imageConfiguration();
const imageEnv = Object.fromEntries(
  image.Env.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
) as Record<string, string>;

/** With the values that an operator fills in. */
const FILLED: Record<string, string> = {
  HOSTNAME_PUBLIC: 'login.example.com',
  SECRETS_KEY: randomBytes(32).toString('base64'),
  POSTGRES_PASSWORD: 'abcdef0123456789',
  METRICS_TOKEN: 'abcdef0123456789abcdef',
};
const fill = (text: unknown) =>
  String(text).replace(/\$\{(\w+)(?::[-?][^}]*)?\}/g, (_, name: string) => FILLED[name] ?? '');

describe('deploy/', () => {
  describe('Dockerfile', () => {
    it('sets only settings that exist, and ends in an image with an unprivileged user', () => {
      expect(
        Object.keys(imageEnv).filter((name) => !NAMES.has(name) && !OF_NODE.includes(name)),
      ).to.deep.equal([]);
      expect(image).to.deep.include({ User: `${USER}:${USER}`, StopSignal: 'SIGTERM' });
      expect(image.ExposedPorts).to.have.all.keys(`${imageEnv.PORT}/tcp`);
      expect(image.Volumes).to.have.all.keys(String(imageEnv.DATA_DIR));
    });

    it('starts from nothing, so it has no shell and no package manager', () => {
      const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM ') + 1);
      expect(last).to.match(/^FROM scratch$/m);
      expect(last).not.to.match(/^(RUN|ADD|SHELL) /m);
      expect([image.Entrypoint, image.Cmd, image.Healthcheck.Test].flat().join(' ')).not.to.match(
        /\b(sh|npm)\b/,
      );
    });

    it('names a probe that exists, and starts a file of the package', () => {
      expect(image.Healthcheck.Test.join(' ')).to.contain('/healthz');
      expect(FEATURES.some(({ routes = {} }) => Object.keys(routes).includes('GET|HEAD /healthz'))).to.equal(
        true,
      );
      const { bin, files, engines } = JSON.parse(read('package.json'));
      expect(image.Entrypoint).to.deep.equal(['node', '--max-semi-space-size=32', `/app/${bin.gatehouse}`]);
      expect(files).to.include('dist');
      // Each version of Node.js that it is built with is supported.
      const least = Number(/\d+/.exec(engines.node)?.[0]);
      const versions = [...dockerfile.matchAll(/\bnode:(\d+)/g)];
      expect(versions).not.to.have.length(0);
      for (const [, version] of versions) expect(Number(version)).to.be.at.least(least);
    });

    it('is refused when it says what the image made without an engine would lack', () => {
      expect(() => imageConfiguration(dockerfile.replace(/^USER .*\n/m, ''))).to.throw('has no USER');
      expect(() => imageConfiguration(`${dockerfile}ONBUILD RUN true\n`)).to.throw('has ONBUILD');
    });

    it('keeps secret and large files out of its context', () => {
      const left = read('deploy/Dockerfile.dockerignore').split('\n');
      expect(left).to.include.members(['.git', 'node_modules', 'data', '**/.env']);
    });
  });

  describe('compose.yaml', () => {
    const { gatehouse, proxy, database } = compose.services;

    it('has settings that the server starts with, in production', () => {
      const given = Object.fromEntries(
        Object.entries(gatehouse.environment).map(([name, value]) => [name, fill(value)]),
      );
      expect(Object.keys(given).filter((name) => !NAMES.has(name))).to.deep.equal([]);
      const settings = readSettings({ ...imageEnv, ...given });
      expect(settings).to.include({ production: true, port: 3000, baseUrl: 'https://login.example.com' });
      expect(settings.tls.mode).to.equal('proxy');
      expect(settings.metrics).to.include({ port: 9464 });
    });

    it('matches the schema of Compose, and a linter finds nothing', () => {
      const rules = {
        // It publishes the ports of the proxy on all addresses; Compose builds the image that it names; the order is ours.
        'no-unbound-port-interfaces': 0,
        'no-build-and-image': 0,
        'service-keys-order': 0,
        'services-alphabetical-order': 0,
      } as const;
      const linter = new DCLinter({ rules, quiet: false, debug: false, exclude: [] });
      const found = (path: string): { rule: string }[] =>
        linter.lintFiles([path], false).flatMap(({ messages }: { messages: object[] }) => messages);
      expect(found(fileURLToPath(new URL('../../deploy/compose.yaml', import.meta.url)))).to.deep.equal([]);
      const wrong = join(mkdtempSync(join(SCRATCH, 'gatehouse-compose-')), 'compose.yaml');
      writeFileSync(wrong, read('deploy/compose.yaml').replace('cap_drop: [ALL]', 'cap_drop: ALL'));
      expect(found(wrong).map(({ rule }) => rule)).to.include('invalid-schema');
      rmSync(dirname(wrong), { recursive: true });
    });

    it('has no secrets of its own and requires each', () => {
      const names = [...read('deploy/compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name);
      const example = read('deploy/.env.example');
      for (const name of new Set(names)) expect(example, name).to.match(new RegExp(`^${name}=`, 'm'));
      for (const name of ['SECRETS_KEY', 'POSTGRES_PASSWORD', 'METRICS_TOKEN'])
        expect(example).to.match(new RegExp(`^${name}=$`, 'm'));
    });

    it('publishes only the ports of the proxy, which alone is trusted', () => {
      expect(gatehouse).not.to.have.property('ports');
      expect(database).not.to.have.property('ports');
      expect(proxy.networks).to.deep.equal(['front']);
      expect(database.networks).to.deep.equal(['back']);
      const [{ subnet }] = compose.networks.front.ipam.config;
      expect(gatehouse.environment.TRUSTED_PROXIES).to.equal(subnet);
      expect(read('deploy/Caddyfile')).to.contain(`reverse_proxy gatehouse:${imageEnv.PORT}`);
    });

    it('does not pass on the trace headers of clients, who could have every request traced', () => {
      for (const name of ['traceparent', 'tracestate', 'baggage'])
        expect(read('deploy/Caddyfile')).to.match(new RegExp(`^\\s+header_up -${name}$`, 'm'));
    });

    it('lets containers write to their data only', () => {
      expect(gatehouse).to.include({ read_only: true });
      expect(gatehouse.cap_drop).to.deep.equal(['ALL']);
      expect(gatehouse.volumes).to.include(`data:${imageEnv.DATA_DIR}`);
      expect(gatehouse.volumes.join()).to.contain(`:${imageEnv.TENANT_FILE}:ro`);
    });
  });

  describe('the Kubernetes manifests', () => {
    it('set only settings that exist, and that the server starts with', () => {
      const given = Object.fromEntries(
        container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
      );
      expect(Object.keys(given).filter((name) => !NAMES.has(name))).to.deep.equal([]);
      const secrets = {
        DATABASE_URL: 'postgres://gatehouse:x@database.example.com/gatehouse?sslmode=verify-full',
        SMTP_URL: 'smtps://user:password@mail.example.com',
        SECRETS_KEY: FILLED.SECRETS_KEY,
        METRICS_TOKEN: FILLED.METRICS_TOKEN,
      };
      const head = read('deploy/kubernetes/gatehouse.yaml').split('apiVersion')[0] ?? '';
      for (const name of Object.keys(secrets)) expect(head).to.contain(name);
      const settings = readSettings({ ...imageEnv, ...given, ...secrets });
      expect(settings.metrics?.port).to.equal(
        container.ports.find(({ name }: { name: string }) => name === 'metrics').containerPort,
      );
      expect(settings.port).to.equal(
        container.ports.find(({ name }: { name: string }) => name === 'http').containerPort,
      );
    });

    it('probe paths and ports that exist', () => {
      const ports = container.ports.map(({ name }: { name: string }) => name);
      for (const [probe, path] of Object.entries({
        startupProbe: '/healthz',
        livenessProbe: '/healthz',
        readinessProbe: '/readyz',
      })) {
        const { httpGet } = container[probe];
        expect(httpGet.path).to.equal(path);
        expect(ports).to.include(httpGet.port);
      }
      for (const { spec } of manifests.filter(({ kind }) => kind === 'Service'))
        for (const { targetPort } of spec.ports) expect(ports).to.include(targetPort);
    });

    it('select the same pods everywhere', () => {
      const { labels } = ofKind('Deployment').spec.template.metadata;
      const selectors = [
        ofKind('Deployment').spec.selector.matchLabels,
        ofKind('PodDisruptionBudget').spec.selector.matchLabels,
        ofKind('NetworkPolicy').spec.podSelector.matchLabels,
        ...manifests.filter(({ kind }) => kind === 'Service').map(({ spec }) => spec.selector),
        pod.topologySpreadConstraints[0].labelSelector.matchLabels,
      ];
      for (const one of selectors) expect(one).to.deep.equal(labels);
      expect(ofKind('HorizontalPodAutoscaler').spec.scaleTargetRef.name).to.equal(
        ofKind('Deployment').metadata.name,
      );
    });

    it('give a stop enough time, after the proxies have been told', () => {
      const pause = Number(/(\d+)\)$/.exec(container.lifecycle.preStop.exec.command.at(-1))?.[1]) / 1000;
      expect(pause).to.be.above(0);
      expect(pod.terminationGracePeriodSeconds).to.be.above(pause + 10);
    });

    it('give containers no privileges, and write access to volumes only', () => {
      expect(pod.securityContext).to.deep.include({ runAsNonRoot: true, runAsUser: USER, runAsGroup: USER });
      expect(pod.securityContext.seccompProfile).to.deep.equal({ type: 'RuntimeDefault' });
      expect(pod.automountServiceAccountToken).to.equal(false);
      expect(container.securityContext).to.deep.include({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const mounts = container.volumeMounts.map(({ name }: { name: string }) => name);
      expect(mounts).to.have.members(pod.volumes.map(({ name }: { name: string }) => name));
      const paths = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
      expect(paths).to.include.members([imageEnv.DATA_DIR, '/config']);
    });
  });

  describe('the network policy', () => {
    const { ingress, egress } = ofKind('NetworkPolicy').spec;

    it('opens only ports of the container, each to one namespace', () => {
      const open = ingress.flatMap(({ ports }: { ports: { port: string }[] }) =>
        ports.map(({ port }) => port),
      );
      expect(open).to.have.members(container.ports.map(({ name }: { name: string }) => name));
      for (const { from } of ingress) expect(from[0].namespaceSelector.matchLabels).to.be.an('object');
    });

    it('does not let the server reach the addresses that hand out credentials of a cloud', () => {
      const blocks = egress.flatMap(({ to }: { to: { ipBlock?: { except: string[] } }[] }) =>
        to.flatMap(({ ipBlock }) => ipBlock?.except ?? []),
      );
      expect(blocks).to.deep.equal([
        '169.254.169.254/32',
        '169.254.170.2/32',
        '169.254.170.23/32',
        '100.100.100.200/32',
        'fd00:ec2::254/128',
        'fd00:ec2::23/128',
      ]);
    });

    it('trusts nobody as a proxy before somebody has said whom', () => {
      const { value } = container.env.find(({ name }: { name: string }) => name === 'TRUSTED_PROXIES');
      // TEST-NET-1, which nobody has (RFC 5737).
      expect(value).to.equal('192.0.2.0/24');
    });
  });

  describe('the systemd unit', () => {
    const lines = unit.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

    it('has only sections and assignments', () => {
      for (const line of lines) expect(line).to.match(/^(\[(Unit|Service|Install)\]|[A-Z][A-Za-z]+=.*)$/);
    });

    it('sets only settings that exist, and starts a command that exists', () => {
      const names = [...unit.matchAll(/^Environment=(\w+)=/gm)].map(([, name]) => name ?? '');
      expect(names.filter((name) => !NAMES.has(name) && !OF_NODE.includes(name))).to.deep.equal([]);
      expect(unit).to.match(/^ExecStart=\S+\/node_modules\/\.bin\/gatehouse$/m);
      const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
      expect(Number(seconds)).to.be.above(10);
      expect(unit).to.contain('StateDirectory=gatehouse').and.contain('DATA_DIR=/var/lib/gatehouse');
    });
  });

  it('describes each file', () => {
    const text = read('deploy/README.md');
    for (const file of [
      'Dockerfile',
      'compose.yaml',
      'Caddyfile',
      '.env.example',
      'gatehouse.service',
      'kubernetes/gatehouse.yaml',
      'prometheus/alerts.yaml',
      'grafana/gatehouse.json',
    ]) {
      expect(text).to.contain(file);
      expect(existsSync(new URL(`../../deploy/${file}`, import.meta.url))).to.equal(true);
    }
  });
});
