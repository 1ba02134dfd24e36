/* Draws explorers: controls, and a picture for every state of them. The same in JupyterLab and on a page.

   gemmCourse.explore(element, spec, {still, ask}) draws one into an element. spec is what
   gemm_course/widgets/_lab_output.py writes; still is {source, alt} of the first state. Pictures come from the
   stored frames of the spec's call, which are scripts in frames/ beside this one. For what is not stored
   there is ask(request), a function that promises {picture: [source, alt], words}, and throws an Error whose
   message says why it cannot; a page without Python leaves it out.

   The course's JupyterLab and the website load this script from its folder. Elsewhere it is the first part of a
   module of anywidget (gemm_course/widgets/_widget_output.py), which has neither the folder nor its frames.

   Pictures are shown in <img>, where SVG runs no script, and all words are set as text. */
window.gemmCourse ??= (() => {
  const home = document.currentScript?.src.replace(/[^/]*$/, ''); // not known in a module, as anywidget loads it
  const SLOW = 1500; // milliseconds after which we say that Python is busy
  const STEP = 900; // milliseconds for which a step is shown that is played
  const NOT_STORED =
    'This combination is not among the stored pictures. In the course’s own JupyterLab (gemm-course lab) ' +
    'Python draws it.';
  const OWN = 'This is a picture of what the cell defines. Run the notebook to move its controls.';

  const make = (tag, className, more = {}) => Object.assign(document.createElement(tag), {className, ...more});
  const load = (tag, attributes) =>
    new Promise((done, failed) => {
      const element = Object.assign(document.createElement(tag), attributes, {onload: done, onerror: failed});
      document.head.append(element);
    });
  const styled = home && load('link', {rel: 'stylesheet', href: home + 'explorer.css'}).catch(() => null);

  /* --- stored frames --- */

  const loaded = new Map();
  const unpack = async packed => {
    const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(stream).json();
  };
  const frames = (name, version) => {
    if (!name) return Promise.resolve(null);
    if (!loaded.has(name)) {
      const file = load('script', {src: `${home}frames/${encodeURIComponent(name)}.js`});
      loaded.set(
        name,
        file.then(() => unpack(window.gemmCourseFrames[name][1])).catch(() => null)
      );
    }
    return loaded.get(name).then(found => (window.gemmCourseFrames?.[name]?.[0] === version ? found : null));
  };
  const frame = (found, key) => {
    if (!found || !Object.hasOwn(found.frames, key)) return null;
    const [alt, places] = found.frames[key];
    return [places.map(place => found.parts[place]).join('<'), alt];
  };

  /* --- states: the text of every control's option --- */

  const long = row =>
    Array.isArray(row) ? row : Array.from({length: row.count}, (_, place) => String(row.from + place * row.step));
  const offered = (spec, place, places) => long(spec.controls[place].rows[spec.controls[place].of.map(n => places[n]).join()]);
  const fitted = (spec, wanted) => {
    const places = [], texts = [], options = [];
    wanted.forEach((text, place) => {
      const row = offered(spec, place, places);
      const found = row.indexOf(text);
      places.push(found < 0 ? row.length - 1 : found);
      texts.push(row[places[place]]);
      options.push(row);
    });
    return {places, texts, options};
  };

  /* --- controls --- */

  let count = 0;
  const suppress = input => {
    input.dataset.lmSuppressShortcuts = 'true'; // on the input itself, or the notebook takes its keys
    return input;
  };
  const range = (control, moved) => {
    const root = make('label', 'gemm-control');
    const label = make('span', 'gemm-label'), said = make('span', 'gemm-value'), name = make('span', '');
    const input = suppress(make('input', '', {type: 'range', min: 0, step: 1}));
    name.textContent = control.label;
    input.setAttribute('aria-label', control.label);
    label.append(name, said);
    root.append(label, input);
    input.addEventListener('input', () => moved(+input.value));
    const show = (options, place) => {
      input.max = options.length - 1;
      input.value = place;
      input.disabled = options.length < 2;
      const words = control.kind === 'steps' ? `${options[place]} of ${options.length}` : options[place];
      said.textContent = words;
      input.setAttribute('aria-valuetext', words);
    };
    return {root, show};
  };
  const segments = (control, moved) => {
    const root = make('fieldset', 'gemm-control'), label = make('legend', 'gemm-label');
    const choices = make('div', 'gemm-choices'), name = `gemm-${++count}`;
    label.textContent = control.label;
    root.append(label, choices);
    let shown = null;
    const show = (options, place) => {
      if (shown !== options.join('\n')) {
        shown = options.join('\n');
        choices.replaceChildren(
          ...options.map((text, each) => {
            const choice = make('label', 'gemm-choice'), words = make('span', '');
            const input = suppress(make('input', '', {type: 'radio', name, value: text}));
            words.textContent = text;
            input.addEventListener('change', () => moved(each));
            choice.append(input, words);
            return choice;
          })
        );
      }
      choices.querySelectorAll('input')[place].checked = true;
    };
    return {root, show};
  };
  const button = (words, pressed) => {
    const root = suppress(make('button', '', {type: 'button'}));
    root.textContent = words;
    root.addEventListener('click', pressed);
    return root;
  };
  const steps = (control, moved) => {
    const slider = range(control, place => { stop(); moved(place); });
    const root = make('div', 'gemm-control'), row = make('div', 'gemm-buttons');
    let last = 0, at = 0, timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = '▶ play';
    };
    const to = place => moved(Math.min(Math.max(place, 0), last));
    const play = button('▶ play', () => {
      if (timer !== null) return stop();
      play.textContent = '❚❚ pause';
      to(at === last ? 0 : at + 1);
      timer = setInterval(() => {
        if (at >= last || !root.isConnected) return stop();
        to(at + 1);
      }, STEP);
    });
    row.append(
      button('◀ previous', () => { stop(); to(at - 1); }),
      button('next ▶', () => { stop(); to(at + 1); }),
      play
    );
    root.append(slider.root, row);
    return {root, show: (options, place) => {
      last = options.length - 1;
      at = place;
      slider.show(options, place);
    }};
  };
  const KINDS = {range, segments, steps};

  /* --- pointing at the picture: a click on a cell chooses its row and its column --- */

  const nearest = (options, wanted) =>
    options.reduce((best, text) => (Math.abs(text - wanted) < Math.abs(best - wanted) ? text : best));
  const point = (image, pointing, chosen) => {
    if (!pointing) return;
    const [left, top, wide, high] = pointing.box, [rows, columns] = pointing.cells;
    const cell = event => { // the picture is drawn at the left and at the top of its element, as large as fits
      const {clientWidth, clientHeight, naturalWidth, naturalHeight} = image;
      const drawn = Math.min(clientWidth, (clientHeight * naturalWidth) / naturalHeight);
      const across = (event.offsetX / drawn - left) / wide, down = (event.offsetY / drawn - top) / high;
      const inside = [across, down].every(part => part >= 0 && part < 1);
      return inside ? [Math.floor(down * rows), Math.floor(across * columns)] : null;
    };
    image.addEventListener('pointermove', event => { image.style.cursor = cell(event) ? 'crosshair' : ''; });
    image.addEventListener('click', event => {
      const found = cell(event);
      if (found) chosen(found);
    });
  };

  /* --- one explorer --- */

  const explore = async (element, spec, {still = null, ask = null} = {}) => {
    const root = make('div', 'gemm-explorer'), parts = make('div', 'gemm-parts');
    const form = make('div', 'gemm-form'), view = make('div', 'gemm-view');
    const area = make('div', 'gemm-frame'), words = make('div', 'gemm-words'), heard = make('div', 'gemm-heard');
    const image = make('img', 'gemm-picture', {width: spec.width});
    words.setAttribute('role', 'status');
    heard.setAttribute('aria-live', 'polite');
    form.setAttribute('role', 'group');
    form.setAttribute('aria-label', `Controls: ${spec.controls.map(control => control.label).join(', ')}`);
    area.append(image);
    view.append(area);
    parts.append(form, view);
    root.append(parts, heard);

    let highest = spec.height ?? 0;
    const keep = () => { // the area never gets lower, so that nothing below it jumps
      if (image.naturalWidth) highest = Math.max(highest, (spec.width * image.naturalHeight) / image.naturalWidth);
      area.style.setProperty('--gemm-ratio', highest / spec.width);
    };
    view.style.maxWidth = `${spec.width}px`;
    const once = spec.controls.length === 1 && spec.controls[0].kind === 'segments'; // chosen once, then read
    view.classList.toggle('gemm-whole', once);
    image.addEventListener('load', keep);
    keep();

    let now = fitted(spec, spec.at), pictures = new Map(), telling = null;
    const key = texts => JSON.stringify(texts);
    const show = ([source, alt]) => {
      image.src = source.startsWith('<') ? 'data:image/svg+xml,' + encodeURIComponent(source) : source;
      image.alt = alt;
      area.classList.remove('gemm-waits');
      clearTimeout(telling);
      telling = setTimeout(() => { heard.textContent = alt.split(/[.:] /)[0]; }, 600);
    };
    if (still) pictures.set(key(now.texts), [still.source, still.alt]);

    const found = {frames: null, ready: null};
    const ready = () => (found.ready ??= frames(spec.frames, spec.version).then(got => (found.frames = got)));

    let asking = null, next = null;
    const request = (texts, action) => {
      const about = spec.own ? {own: spec.own} : {call: spec.call};
      return {...about, at: texts, ...(action ? {action} : {})};
    };
    const python = async (state, action) => { // one request at a time; of those that wait, only the last
      if (asking) {
        next = [state, action];
        return;
      }
      asking = key(state.texts);
      area.classList.add('gemm-waits');
      words.textContent = action ? `${action} …` : 'Asking Python …';
      const slow = setTimeout(() => {
        if (!action) words.textContent = 'Python is busy or starting; this is drawn when it is free.';
      }, SLOW);
      let said = '';
      try {
        const answer = await ask(request(state.texts, action));
        if (action) pictures.clear();
        if (answer.picture) pictures.set(key(state.texts), answer.picture);
        said = answer.words ?? '';
      } catch (problem) {
        said = problem.message;
      }
      clearTimeout(slow);
      asking = null;
      if (next) {
        const [later, what] = next;
        next = null;
        if (what || !known(later)) return python(later, what);
      }
      const picture = known(now);
      if (picture) show(picture);
      words.textContent = action || state === now ? said : '';
    };
    const known = state => pictures.get(key(state.texts)) ?? frame(found.frames, state.places.join());

    const draw = async () => {
      const state = now;
      now.options.forEach((options, place) => controls[place].show(options, now.places[place]));
      let picture = known(state);
      if (!picture) {
        await ready();
        if (state !== now) return;
        picture = known(state);
      }
      if (picture) {
        next = null;
        words.textContent = '';
        show(picture);
      } else if (ask) {
        await python(state);
      } else {
        area.classList.add('gemm-waits');
        words.textContent = NOT_STORED;
      }
    };
    const controls = spec.controls.map((control, place) =>
      KINDS[control.kind](control, chosen => {
        now = fitted(spec, now.texts.with(place, now.options[place][chosen]));
        draw();
      })
    );
    if (spec.own && !ask) words.textContent = OWN;
    else form.append(...controls.map(control => control.root));
    if (spec.pointing) form.append(Object.assign(make('div', 'gemm-hint'), {textContent: spec.pointing.words}));
    point(image, spec.pointing, cell => {
      const texts = spec.pointing.controls.reduce((texts, place, which) =>
        texts.with(place, nearest(now.options[place], cell[which])), now.texts);
      now = fitted(spec, texts);
      draw();
    });
    if (ask) form.append(...(spec.actions ?? []).map(action => button(action, () => python(now, action))));
    form.append(words);

    if (still) show(pictures.get(key(now.texts)));
    now.options.forEach((options, place) => controls[place].show(options, now.places[place]));
    await styled;
    if (!still) await draw();
    element.replaceChildren(root);
    new IntersectionObserver((seen, watch) => { // loaded before the first move, but not before it is seen
      if (seen.some(one => one.isIntersecting)) {
        watch.disconnect();
        ready();
      }
    }).observe(root);
  };

  /* --- an output's HTML, as gemm_course/widgets/_fold.py writes it; parsed apart from the page, nothing runs --- */

  const parsed = html => new DOMParser().parseFromString(html, 'text/html');
  const partsOf = html => [...parsed(html).querySelectorAll('body > details > .gemm-part')].map(part => part.innerHTML);
  const behind = (words, ...content) => {
    const details = make('details', ''), summary = suppress(make('summary', ''));
    summary.textContent = words;
    summary.style.cursor = 'pointer';
    details.append(summary, ...content);
    return details;
  };
  const stillOf = html => {
    const image = parsed(html).querySelector('img');
    return image?.src.startsWith('data:image/') ? {source: image.src, alt: image.alt} : null;
  };

  const upgrade = () => {
    for (const element of document.querySelectorAll('[data-gemm-explorer]')) {
      const spec = JSON.parse(element.dataset.gemmExplorer);
      element.removeAttribute('data-gemm-explorer');
      explore(element, spec, {still: stillOf(element.innerHTML)});
    }
  };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', upgrade);
  else upgrade();

  return {behind, explore, partsOf, stillOf, upgrade};
})();
