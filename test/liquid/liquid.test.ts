// The thread in which the tenant's own templates are rendered.
import { expect } from 'chai';
import {
  createTenantLiquid,
  TemplateFault,
  type TenantLiquid,
} from '../../src/capabilities/liquid/liquid.ts';
import type { LiquidJob } from '../../src/capabilities/liquid/liquid-templates.ts';
import { SLOW_FILTER, SLOW_FILTERS } from './support.ts';

const html = (source: string, variables: object = {}): LiquidJob => ({ kind: 'html', source, variables });

describe('templates of the tenant', () => {
  let liquid: TenantLiquid;
  beforeEach(() => {
    liquid = createTenantLiquid();
  });
  afterEach(() => liquid.close());

  const faultOf = (job: LiquidJob): Promise<string> =>
    liquid.render(job).then(
      () => '',
      (thrown) => (thrown instanceof TemplateFault ? thrown.message : String(thrown)),
    );

  for (const [filter, source] of Object.entries(SLOW_FILTERS)) {
    it(`that compute in ${filter} end, and take no time of the thread that answers`, async () => {
      expect(await liquid.render(html('ready'))).to.equal('ready');
      const before = process.threadCpuUsage();
      expect(await faultOf(html(source))).to.equal('the template takes too long');
      const { user, system } = process.threadCpuUsage(before);
      expect((user + system) / 1000).to.be.below(250);
    });
  }

  it('that take too long let those of others have their turn, and are not tried again', async () => {
    expect(await liquid.render(html('ready'))).to.equal('ready');
    const slow = Array.from({ length: 50 }, () => faultOf(html(SLOW_FILTER)));
    expect(await liquid.render(html('{{ name }}', { name: '<Ada>' }))).to.equal('&lt;Ada&gt;');
    expect(await faultOf(html(SLOW_FILTER))).to.equal('the template takes too long');
    for (const fault of await Promise.all(slow)) expect(fault).to.match(/too long/);
    expect(await liquid.render({ kind: 'text', source: '{{ n }}', variables: { n: '<' } })).to.equal('<');
  });

  it('that fill the memory of the thread fail alone', async () => {
    const source =
      '{% assign a = name | split: "" %}{% for i in (1..400) %}{% capture b %}{{ b }}{{ name }}{% endcapture %}{% endfor %}';
    expect(await faultOf(html(source, { name: 'x'.repeat(1_000_000) }))).not.to.equal('');
    expect(await liquid.render(html('still {{ a }}', { a: 'here' }))).to.equal('still here');
  });

  it('that are malformed say so in one sentence', async () => {
    expect(await faultOf(html('{% if %}'))).to.match(/^[^\n]+$/);
  });

  it('are not rendered any more at the end, and the end does not wait for them', async () => {
    const slow = faultOf(html(SLOW_FILTER));
    await liquid.close();
    expect(await slow).not.to.equal('');
    expect(await faultOf(html('late'))).not.to.equal('');
  });
});
