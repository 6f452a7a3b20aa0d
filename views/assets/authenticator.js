// The authenticator: a key pair of this browser's own, which never leaves it, approves logins.
(() => {
  const root = document.getElementById('authenticator');
  const { origin } = root.dataset;
  const say = (text) => {
    document.getElementById('status').textContent = text;
  };
  const fill = (text, values) =>
    Object.entries(values).reduce((all, [name, value]) => all.replace(`{${name}}`, value), text);

  // Accounts and keys are in IndexedDB: a key that cannot be exported fits nowhere else.
  const database = new Promise((resolve, reject) => {
    const request = indexedDB.open('authenticator', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('devices', { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const inStore = async (mode, run) => {
    const store = (await database).transaction('devices', mode).objectStore('devices');
    return new Promise((resolve, reject) => {
      const request = run(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  };
  const devices = () => inStore('readonly', (store) => store.getAll());

  const encode = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replace(/=+$/, '');
  const encodeJson = (value) => encode(new TextEncoder().encode(JSON.stringify(value)));
  /** A JWT (RFC 7519) signed with a device's key, for us, now. */
  const sign = async (privateKey, claims) => {
    const payload = { ...claims, aud: origin, iat: Math.floor(Date.now() / 1000) };
    const input = `${encodeJson({ alg: 'ES256', typ: 'JWT' })}.${encodeJson(payload)}`;
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    const signature = await crypto.subtle.sign(algorithm, privateKey, new TextEncoder().encode(input));
    return `${input}.${encode(signature)}`;
  };

  const ask = async (path, options = {}) => {
    const answer = await fetch(path, options);
    if (answer.status === 204) return undefined;
    const body = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(body.error_description), { status: answer.status });
    return body;
  };

  const enroll = async (barcode, name) => {
    const uri = URL.parse(barcode.trim());
    const ticket = uri?.searchParams.get('enrollment_tx_id');
    if (!ticket || uri.searchParams.get('base_url') !== origin) throw new Error(root.dataset.bad);
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, [
      'sign',
      'verify',
    ]);
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
    const proof = await sign(pair.privateKey, { enrollment_tx_id: ticket });
    const device = await ask('/authenticator/devices', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ enrollment_tx_id: ticket, public_key: { kty, crv, x, y }, name, proof }),
    });
    await inStore('readwrite', (store) => store.put({ ...device, privateKey: pair.privateKey }));
    return device;
  };

  const shown = new Map();
  const showRequests = (device, requests) => {
    shown.set(
      device.id,
      requests.map((request) => ({ device, request })),
    );
    const all = [...shown.values()].flat();
    const list = document.getElementById('requests');
    list.replaceChildren(
      ...all.map((one) => {
        const part = document.getElementById('request').content.cloneNode(true);
        const { application, ip, at, number, binding_message: message } = one.request;
        part.querySelector('h2').textContent = fill(root.dataset.request, { application });
        const time = new Date(at).toLocaleTimeString(document.documentElement.lang, { timeStyle: 'short' });
        part.querySelector('.from').textContent =
          `${one.device.account} · ${fill(root.dataset.from, { ip, time })}`;
        const { application_hosts: hosts = [], application_unverified: isUnverified = false } = one.request;
        part.querySelector('.hosts').hidden = hosts.length === 0;
        part.querySelector('.hosts bdi').textContent = hosts.join(', ');
        part.querySelector('.unverified').hidden = !isUnverified;
        part.querySelector('.alert').hidden = hosts.length === 0 && !isUnverified;
        part.querySelector('.message').hidden = message === undefined;
        part.querySelector('.message strong').textContent = message ?? '';
        for (const { type, lines } of one.request.details ?? []) {
          const list = document.createElement('dl');
          list.className = 'detail';
          for (const [name, value] of [[type, ''], ...lines.map((line) => [line.name, line.value])]) {
            const row = document.createElement('div');
            for (const [tag, text] of [
              ['dt', name],
              ['dd', value],
            ]) {
              const isolated = document.createElement('bdi');
              isolated.textContent = text;
              const cell = document.createElement(tag);
              cell.append(isolated);
              row.append(cell);
            }
            list.append(row);
          }
          part.querySelector('.choice').before(list);
        }
        part.querySelector('.match').hidden = number === undefined;
        part.querySelector('.match strong').textContent = number ?? '';
        for (const button of part.querySelectorAll('button')) {
          button.addEventListener('click', () => answer(one, button.dataset.answer));
        }
        return part;
      }),
    );
    document.getElementById('idle').hidden = all.length > 0;
  };

  const answer = async ({ device, request }, decision) => {
    try {
      const assertion = await sign(device.privateKey, {
        sub: device.id,
        request: request.id,
        answer: decision,
      });
      await ask(`/authenticator/requests/${encodeURIComponent(request.id)}`, {
        method: 'POST',
        headers: { authorization: `Device ${assertion}` },
      });
      say(decision === 'allow' ? root.dataset.allowed : root.dataset.denied);
    } catch (error) {
      say(error.status === 404 ? root.dataset.gone : fill(root.dataset.failed, { reason: error.message }));
    }
    showRequests(
      device,
      shown
        .get(device.id)
        .map((one) => one.request)
        .filter(({ id }) => id !== request.id),
    );
  };

  const streams = new Map();
  const follow = async (device) => {
    // Only who shows the details of a request gets one that has some.
    const assertion = await sign(device.privateKey, { sub: device.id, shows: ['authorization_details'] });
    const stream = new EventSource(`/authenticator/events?assertion=${encodeURIComponent(assertion)}`);
    streams.set(device.id, stream);
    stream.addEventListener('requests', (event) => showRequests(device, JSON.parse(event.data)));
    // Newer pages of the same user took its place: coming again would end one of theirs.
    stream.addEventListener('replaced', () => stream.close());
    stream.onerror = () => {
      // The assertion is good for a minute: each new stream needs one of its own.
      stream.close();
      if (streams.get(device.id) === stream) setTimeout(() => follow(device), 1000);
    };
  };

  const showAccounts = async () => {
    const all = await devices();
    const list = document.querySelector('#accounts ul');
    list.replaceChildren(
      ...all.map((device) => {
        const item = document.createElement('li');
        const remove = document.createElement('button');
        remove.type = 'button';
        remove.className = 'link';
        remove.textContent = list.dataset.remove;
        remove.addEventListener('click', async () => {
          streams.get(device.id)?.close();
          streams.delete(device.id);
          shown.delete(device.id);
          await inStore('readwrite', (store) => store.delete(device.id));
          showRequests(device, []);
          shown.delete(device.id);
          await showAccounts();
        });
        item.append(`${device.issuer}: ${device.account} `, remove);
        return item;
      }),
    );
    document.getElementById('accounts').hidden = all.length === 0;
    notify.hidden = !canNotify || all.length === 0;
    document.getElementById('add').open = all.length === 0;
    for (const device of all) if (!streams.has(device.id)) await follow(device);
  };

  /** Push messages wake this device where the tenant has keys for them and the person wants it. */
  const notify = document.getElementById('notify');
  const subscribe = async () => {
    const { pushKey, pushTitle } = root.dataset;
    const script = `/authenticator/worker.js?title=${encodeURIComponent(pushTitle)}`;
    const worker = await navigator.serviceWorker.register(script, { scope: '/authenticator' });
    await navigator.serviceWorker.ready.catch(() => worker);
    const options = { userVisibleOnly: true, applicationServerKey: pushKey };
    const { endpoint } = await worker.pushManager.subscribe(options);
    for (const device of await devices()) {
      const assertion = await sign(device.privateKey, { sub: device.id, push_endpoint: endpoint });
      await ask('/authenticator/push', { method: 'POST', headers: { authorization: `Device ${assertion}` } });
    }
    notify.hidden = true;
  };
  notify
    .querySelector('button')
    .addEventListener('click', () =>
      subscribe().catch((error) => say(fill(root.dataset.failed, { reason: error.message }))),
    );
  const canNotify =
    root.dataset.pushKey !== '' && 'PushManager' in globalThis && 'serviceWorker' in navigator;

  const form = document.getElementById('enroll');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const device = await enroll(
        document.getElementById('barcode').value,
        document.getElementById('name').value,
      );
      say(fill(root.dataset.added, { account: device.account }));
      form.reset();
      document.getElementById('name').value = deviceName();
      await showAccounts();
    } catch (error) {
      say(fill(root.dataset.failed, { reason: error.message }));
    }
  });

  const deviceName = () => navigator.userAgentData?.platform ?? navigator.platform ?? 'Browser';

  /** The camera reads the code where the browser can. */
  const scan = document.getElementById('scan');
  if ('BarcodeDetector' in globalThis && navigator.mediaDevices) {
    scan.hidden = false;
    scan.addEventListener('click', async () => {
      const video = document.getElementById('camera');
      const detector = new BarcodeDetector({ formats: ['qr_code'] });
      const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } });
      video.srcObject = stream;
      video.hidden = false;
      await video.play();
      const look = async () => {
        const [found] = await detector.detect(video);
        if (found === undefined) return requestAnimationFrame(look);
        for (const track of stream.getTracks()) track.stop();
        video.hidden = true;
        document.getElementById('barcode').value = found.rawValue;
        form.requestSubmit();
      };
      await look();
    });
  }

  root.hidden = false;
  document.getElementById('name').value = deviceName();
  // On the same device the login page leads here with the code in the fragment, which no server sees.
  const given = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, '', location.pathname);
  showAccounts().then(() => {
    if (given === '') return;
    document.getElementById('add').open = true;
    document.getElementById('barcode').value = given;
  });
})();
