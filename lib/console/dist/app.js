import{C as r,b as o,ba as m,ob as p,pa as i}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
