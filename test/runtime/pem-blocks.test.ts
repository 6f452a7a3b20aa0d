// PEM blocks in texts that others send.
import { expect } from 'chai';
import { pemBlocks } from '../../src/runtime/pem-blocks.ts';

const block = (label: string, content: string, end = label) =>
  `-----BEGIN ${label}-----\n${content}\n-----END ${end}-----`;

describe('PEM blocks', () => {
  it('are found with their labels, among other text', () => {
    const text = `Subject: x\n${block('CERTIFICATE', 'QUJD')}\n-- y --\n${block('PUBLIC KEY', 'REVG')}\n`;
    expect(pemBlocks(text)).to.deep.equal([
      { label: 'CERTIFICATE', content: '\nQUJD\n', text: block('CERTIFICATE', 'QUJD') },
      { label: 'PUBLIC KEY', content: '\nREVG\n', text: block('PUBLIC KEY', 'REVG') },
    ]);
  });

  it('end with their own label, have content, and contain no hyphen', () => {
    for (const text of [
      block('CERTIFICATE', 'QUJD', 'PUBLIC KEY'),
      '-----BEGIN CERTIFICATE----------END CERTIFICATE-----',
      block('CERTIFICATE', 'QU-JD'),
      '-----BEGIN CERTIFICATE-----\nQUJD',
      '-----BEGIN ',
      '',
    ]) {
      expect(pemBlocks(text), text).to.deep.equal([]);
    }
    const nested = `-----BEGIN CERTIFICATE-----\n${block('CERTIFICATE', 'QUJD')}`;
    expect(pemBlocks(nested)).to.have.length(1);
  });

  it('are found in time that is proportional to the text', () => {
    for (const part of [
      '-----BEGIN ',
      '-----BEGIN A-----',
      '-',
      'BEGIN',
      block('A', 'B', 'C'),
      '-----BEGIN A-----\nB',
    ]) {
      const before = process.threadCpuUsage();
      pemBlocks(part.repeat(Math.ceil(1_000_000 / part.length)));
      const { user, system } = process.threadCpuUsage(before);
      expect((user + system) / 1000, part).to.be.below(500);
    }
  });
});
