// How a container of the image starts: the last stage of deploy/Dockerfile, which is also read by those who build
// without it, so that both images behave alike.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../bundle.ts';

/** The `config` of an image (OCI image specification 1.1, "Properties"), with Docker's `Healthcheck`. */
export interface ImageConfiguration {
  User: string;
  ExposedPorts: Record<string, object>;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  Volumes: Record<string, object>;
  WorkingDir: string;
  Labels: Record<string, string>;
  StopSignal: string;
  /** Its times are in nanoseconds. */
  Healthcheck: { Test: string[]; Interval: number; Timeout: number; StartPeriod: number; Retries: number };
}

/** Reads it. @throws Error when an instruction is missing, or is one that is not expected there. */
export function imageConfiguration(dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8')) {
  const stage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM ') + 1);
  const lines = stage
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n');
  const said = new Map(
    lines
      .filter((line) => line !== '')
      .map((line) => [line.split(' ', 1).join(), line.replace(/^\S+ +/, '')]),
  );
  const of = (name: string): string => {
    const text = said.get(name);
    if (text === undefined) throw new Error(`The last stage of deploy/Dockerfile has no ${name}.`);
    said.delete(name);
    return text;
  };
  const [, options = '', test = ''] = /^((?:--\S+ )*)CMD (.*)$/.exec(of('HEALTHCHECK')) ?? [];
  const option = (name: string) => Number(new RegExp(`--${name}=(\\d+)`).exec(options)?.[1]);
  const seconds = (name: string) => option(name) * 1e9;
  const configuration: ImageConfiguration = {
    User: of('USER'),
    ExposedPorts: { [`${of('EXPOSE')}/tcp`]: {} },
    Env: pairs(of('ENV')).map(([name, value]) => `${name}=${value}`),
    Entrypoint: JSON.parse(of('ENTRYPOINT')),
    Cmd: JSON.parse(of('CMD')),
    Volumes: { [of('VOLUME')]: {} },
    WorkingDir: of('WORKDIR'),
    Labels: Object.fromEntries(pairs(of('LABEL'))),
    StopSignal: of('STOPSIGNAL'),
    Healthcheck: {
      Test: ['CMD', ...JSON.parse(test)],
      Interval: seconds('interval'),
      Timeout: seconds('timeout'),
      StartPeriod: seconds('start-period'),
      Retries: option('retries'),
    },
  };
  const others = [...said.keys()].filter((name) => !['FROM', 'COPY'].includes(name));
  if (others.length > 0) throw new Error(`The last stage of deploy/Dockerfile has ${others.join()}.`);
  return configuration;
}

/** The pairs of `ENV` and `LABEL`, whose values may be in double quotes. */
const pairs = (text: string): [string, string][] =>
  [...text.matchAll(/(\S+?)=(?:"([^"]*)"|(\S*))/g)].map(([, name = '', quoted, plain = '']) => [
    name,
    quoted ?? plain,
  ]);
